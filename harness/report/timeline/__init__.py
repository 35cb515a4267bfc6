"""The timeline of a run, drawn from its history: a track for each part, faults as numbered bands, curves below them.

    from_history.py  the history's events as attempts, batches, faults, phases
    counts.py        how many records of the source a batch took
    curves.py        records sent and committed, rows read in the sinks, lag, over time
    saved_ranges.py  what a pipeline saved that manages its own offsets
    shapes.py        what a picture is made of, and how seconds become places
    tracks.py        the tracks
    picture.py       all of it as one picture, which a template turns into SVG

Nothing is drawn that the run folder does not hold; what was not recorded is a dotted line that says so.
"""
