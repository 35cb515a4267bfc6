"""Every crash point of a pipeline, found by watching it, each crashed, and one answer.

A *cell* is a place in the course of a batch, a fault, and which batch: the first one that has records, or a later one.
A run without faults shows the places: operations on the checkpoint and state as the agent reports them, the sink's own
commit, rows of the sink, failpoints that the program comes to. Cells are packed into runs so that each has another
batch and a whole batch after it. A cell that was not reached is tried again, as is one whose run was violated before
it.

cells.py     the cells of a pipeline, from the history of a run without faults; pure
packing.py   the runs that have them; pure
results.py   what a run says of each of its cells; pure
expected.py  what a scenario expects of each, by the name of its crash point; pure
answer.py    one sentence, the grid, the exit code; pure
rows.py      a cell as a run of a suite, for JUnit, the summary and pytest
pages.py     the page of a sweep
state.py     what is known so far: a sweep that was killed goes on
shrink.py    a scenario that breaks, made smaller; pure
since.py     which pipelines have changed since a commit of git
swept.py     one pipeline on a real stack
command.py   those of a suite, and the schedules beside them
"""
