"""How far a pipeline has got, while it runs.

observer        follows the checkpoints
positions       where a pipeline that manages its own offsets stood
reported        how far the pipeline says it is
commit_gaps     how often its queries commit
stall_detector  whether it stalls
quiet_period    how long its sinks must stay unchanged
remote_checkpoint  the copy of a checkpoint that a component keeps, and the requests that commit it
"""
