"""pytest collects scenarios; the programs are Spark's."""

collect_ignore = ["jobs"]
