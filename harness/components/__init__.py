"""The servers that a run needs, and Spark itself: all that is known of each, in a folder of its own."""
