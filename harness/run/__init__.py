"""One run of one scenario: `harness.run.loop.run` is the loop that acts, the rest are its parts.

plan             every choice that was made
preflight        `expected` and sink, before the first record
run_or_baseline  what both have in common: how they begin and end
live_run         starts and ends all parts
supervisor       keeps the driver running
last_words       what an attempt said last
feed             hands records to the producer
schedule/        the steps, in order; does a fault, proves it
snapshots        where everything stood
catch_up         after the schedule
progress/        how far the pipeline has got
baseline/        the same run without faults
"""
