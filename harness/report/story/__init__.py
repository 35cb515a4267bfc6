"""One record's story, from the run folder alone: `onceproof explain RUN KEY`.

record_key.py  which record or row a KEY of the command line means
views.py       the ledger as `expected` of each sink sees it
collect.py     what the run folder holds of it: send, answer, place, batches, attempts, rows, findings
lines.py       the same as lines for a terminal
"""
