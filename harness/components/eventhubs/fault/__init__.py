"""Faults on Event Hubs' endpoint: its broker killed and brought back, and the program's key rotated."""
