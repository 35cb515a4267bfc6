"""The servers that a run needs, and Spark itself: one folder has all that is known of each."""
