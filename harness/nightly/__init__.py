"""A night of drawn schedules: what is asked of each pipeline, in which order, and what a held night says.

A *target* is a pipeline with its sinks, input and guarantee, as a scenario file has them. The list of plans is fixed
before the first run: known failing plans (the corpus, ordinary scenario files), and then drawn ones, the same for the
same targets, seed and shard. Each half takes the targets in turn. Even numbers are the *uniform* half: each is drawn
by itself, over the triggers, then over the faults that the stack and the loader take there. Odd numbers are the
*weighted* half: of some candidates the one whose cells (target, crash point, fault) the list and earlier nights have
aimed at least. Once a plan of a target has failed, its later ones are passed over, while there are other targets.
Only the uniform half bounds anything, for the other one goes where the list sends it. A drawn plan expects *held*:
what is violated is a finding, run again at once, and written as a scenario file. An untested one counts for nothing.
The state is a file of lines, one a run, so that a killed night goes on where it was, with the same plans.

draw.py      targets and plans; pure
possible.py  the steps that are possible in a batch of a target; pure
night.py     the order, again after a failure, the time, the exit code; who runs a scenario is handed in
state.py     what the night has done so far, a line a run
bound.py     what a held night says, cell by cell; pure
kept.py      which run folders stay
trend.py     the nights so far
command.py   the same on a real stack
"""
