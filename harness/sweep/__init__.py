"""Every crash point of a pipeline, found by watching it, each crashed, and one answer.

A *cell* is a place in the course of a batch, a fault, and which batch: the first one that has records, or a later one.
A run without faults shows the places: operations on the checkpoint and state as the agent reports them, rows of the
sink, failpoints that the scenario's file names. Cells are packed into runs so that each has a batch of its own and a
whole batch after it. A cell that was not reached is tried once more, as is one whose run was violated before it.

cells.py     the cells of a pipeline, from the history of a run without faults; pure
packing.py   the runs that have them; pure
results.py   what a run says of each of its cells; pure
answer.py    one sentence, the grid, the exit code; pure
pages.py     the page of a sweep
state.py     what is known so far: a sweep that was killed goes on
command.py   the same on a real stack
"""
