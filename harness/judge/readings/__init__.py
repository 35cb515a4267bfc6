"""The sinks as they were read at each step, beside the expected rows.

scale       the expected rows over any part of the ledger
sink_state  what a sink held at a reading, made comparable
read_at     the readings of a step
traces      what shows that a batch had begun to write
in_flight   which query feeds a sink, and what it had in flight
"""
