"""What a run leaves behind, and how it is sealed, read back and freed of secrets."""
