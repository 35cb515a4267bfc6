"""How a pipeline into OpenSearch begins."""

from __future__ import annotations

from harness.sinks.starts import Parts, Table
from harness.sinks.starts.shapes import Start

TYPES = {
    "string": ("type: keyword",),
    "bigint": ("type: long",),
    "decimal(18, 2)": ("type: scaled_float", "scaling_factor: 100"),
    "timestamp_ntz": ("type: date_nanos",),
}
BEFORE = '''\
WRITTEN = {"timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"}


def put(index: str, documents: list[tuple[str, str]]) -> None:
    """Send each document under its id."""
$hint    lines = (f"{json.dumps({'index': {'_id': key}})}\\n{document}\\n" for key, document in documents)
    headers = {"Content-Type": "application/x-ndjson"}
    request = urllib.request.Request(f"{index}/_bulk", "".join(lines).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        result = json.load(answer)
    if result["errors"]:
        raise RuntimeError(f"OpenSearch refused some of {len(documents)} documents: {result['items'][:1]}")

'''
BATCH = """\

    def save(part: Iterator[Row]) -> None:  # on an executor, one request a partition
        documents = [(row["key"], row["document"]) for row in part]
        if documents:
            put(args.index, documents)

    def batch(rows: DataFrame, number: int) -> None:
        document = f.to_json(f.struct("*"), WRITTEN).alias("document")
        rows.select(rows["{key}"].cast("string").alias("key"), document).foreachPartition(save)
"""


def upsert(table: Table) -> Parts:
    """Documents under the key of their row, one request a partition."""
    fields = (
        line
        for name, kind in table.columns.items()
        for line in (f"          {name}:", *(f"            {word}" for word in TYPES[kind]))
    )
    return Parts(
        where="an index in OpenSearch",
        header=(
            "setup:",
            "  opensearch: |",
            f"    {table.name}:",
            "      mappings:",
            "        dynamic: strict",
            "        properties:",
            *fields,
        ),
        sink=(f"opensearch: {table.name}", f"columns: {table.sql({})}"),
        options={"--index": f"{{opensearch.url}}/{{opensearch.prefix}}{table.name}"},
        examples=f" --index http://localhost:9200/{table.name}",
        library=("import json", "import urllib.request", "from collections.abc import Iterator"),
        before=BEFORE.replace("$hint", table.hint('without "_id"', "    ")),
        batch=BATCH.format(key=table.key),
    )


START = Start(upsert)
