"""Faults on HDFS: one of its processes killed and brought back, and safe mode."""
