"""A proxy in front of the object store that keeps a checkpoint: it sees each request of a pipeline, and can hold one.

framing     where requests and answers begin and end by HTTP
exchange    a request with its answer, and one that is held
connection  one connection of a client
server      all of them, in a thread of this process
proxies      those of a server's runs
commits     which request is part of a commit of Spark's checkpoint
"""
