"""Spark: a standalone cluster, its drivers, its Python workers."""
