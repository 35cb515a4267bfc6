"""When to act: a protocol event, not only a clock."""
