"""Onceproof: puts the claim of exactly-once delivery of a Spark pipeline to the test."""

__version__ = "0.2.0"
