"""What each hit put at stake in each sink, and whether it would show.

weigh       the stakes of a hit
in_flight   which records a query had in flight, and which query feeds a sink
traces      what shows that a batch had begun to write
visible     models of a harm, planted
scale       the effect over any part
sink_state  what a sink held at a snapshot, made comparable
"""
