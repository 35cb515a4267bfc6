"""The world a pipeline runs in.

processes    real servers as child processes of ours
containers   the same servers in containers, on this machine's engine
external     a cluster that is already there
"""
