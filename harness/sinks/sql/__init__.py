"""Servers of SQL, as components and as sinks: what is the same whatever the server.

part            one part of a run there, as the harness asks it
server          the component: a scenario's setup
offsets         where a pipeline stands that keeps its offsets there
table           a table or query of a run, as a sink
row_breakpoint  counts its rows, and holds their writer
"""
