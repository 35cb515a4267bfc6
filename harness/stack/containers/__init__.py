"""The stack `containers`: the same servers, each in a container of its own, on this machine's engine."""
