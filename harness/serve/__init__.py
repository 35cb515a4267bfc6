"""`onceproof serve`: the store of runs in a browser, on this machine alone, read only.

search    which runs are asked for; pure
listing   the runs of a store, each read once, and their page
files     the files of a store that may be seen, and no other
app       requests to answers
server    the socket, the address, Ctrl-C
"""
