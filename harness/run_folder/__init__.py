"""What a run leaves behind, and how it gets its digests, is read back and freed of secrets."""
