"""The same run without faults.

runs    control runs, made or taken from the cache
digest  the files that the answer of one depends on
"""
