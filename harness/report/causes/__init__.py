"""Findings by cause: what went wrong once, however many rows show it.

groups.py      findings that share a kind, a sink and faults, as one cause
headline.py    the verdict in plain sentences, each from evidence in the run folder
sentences.py   how such a sentence is made, and how a long reason becomes short sentences
shown.py       the causes as the page shows them
not_caught_up.py   why a run that did not catch up is inconclusive, and what to change
table_file.py  every finding as a row of a CSV file beside the page
"""
