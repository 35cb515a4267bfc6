"""`onceproof init`: a scenario proposed for a program that is there, from its source alone; nothing is run.

program.py  what a program says: where it reads and writes, and where each address comes from; pure
propose.py  the scenario, and what could not be found out; pure
"""
