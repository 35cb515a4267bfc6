"""Ways to hurt the stack; each returns evidence that it really happened."""
