"""What a request to S3 asks of one object: buckets are in the path, as we have Spark ask, and keys begin with one."""

from __future__ import annotations

from harness.remote.proxy.commits import Dialect

SOURCE = "x-amz-copy-source"


def _path(source: str) -> str:
    return source.partition("?")[0]


DIALECT = Dialect(silent=frozenset({"x-id"}), copy_source=SOURCE, path_of=_path)
operation = DIALECT.operation
