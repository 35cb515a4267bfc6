"""A session: one harness, everything it starts, and the certainty that all of it ends."""
