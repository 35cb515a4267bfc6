"""The stacks: where runs take place. Each says in its own folder what it can do, without what runs it."""

DEFAULT = "processes"
"""The stack of a command that names none."""
