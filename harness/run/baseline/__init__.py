"""The same run without faults.

runs    baseline runs, made or taken from the cache
digest  the files that the answer of one depends on
"""
