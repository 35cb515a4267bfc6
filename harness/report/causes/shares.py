"""Of each partition of a batch, how many of its records the findings of a cause name.

Pure. A partition whose transaction was committed before the fault has all of its records there twice; of one that was
rolled back none.
"""

from __future__ import annotations

from harness.report.causes.groups import Group, cut
from harness.report.causes.sentences import listed
from harness.report.timeline.counts import Counts
from harness.scenario import Kind, Verdict
from harness.snapshot import Progressed

Shares = dict[int, tuple[int, int]]
"""By partition: records that the findings name, and records that the batch took."""


def shares(verdict: Verdict, group: Group, progressed: Progressed, counts: Counts | None) -> Shares:
    """Empty where findings are left out, name no records, or name more than one batch."""
    kept = group.kind not in cut(verdict) and all(finding.records for finding in group.findings)
    queries = [query for query in progressed.queries if query.ours]
    if not kept or len(group.batches) != 1 or len(queries) != 1 or counts is None:
        return {}
    named = {each.partition: each.count for each in group.ranges()}
    took = next((batch.ranges for batch in queries[0].batches if batch.batch == group.batches[0]), {})
    return {each: (named.get(each, 0), counts.within({each: took[each]})) for each in sorted(took)}


def whole_or_none(group: Group, found: Shares) -> str:
    """Return the sentence that says which partitions of the batch came twice, where each did so with all of its records
    or with none; empty elsewhere."""
    took = {each: pair for each, pair in found.items() if pair[1]}
    twice = [each for each, (named, count) in took.items() if named == count]
    never = [each for each, (named, _) in took.items() if not named]
    if group.kind is not Kind.DUPLICATED or not twice or not never or len(twice) + len(never) < len(took):
        return ""
    of = f"Of batch {group.batches[0]}"
    return f"{of}, all records of {_partitions(twice)} are there twice, none of {_partitions(never)}."


def _partitions(numbers: list[int]) -> str:
    if len(numbers) > 6:
        return f"{len(numbers):,} partitions"
    return f"partition{'' if len(numbers) == 1 else 's'} {listed([str(each) for each in numbers])}"
