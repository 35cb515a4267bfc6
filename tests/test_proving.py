"""Scenarios of the proving suite on the stack `processes`, each as it expects, and some of other sinks and sources.

CI plays some of them; `make prove SUITE=tests` plays the others, and `make prove SUITE=all` every scenario.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.load import load
from harness.run.loop import Result
from harness.scenario import Scenario
from harness.sinks import SINKS
from harness.sources import SOURCES
from tests.shipped import alone

SCENARIOS = Path(__file__).parents[1] / "scenarios"
PROVING = sorted((SCENARIOS / "proving").glob("*.yaml"))
OTHERS = [
    *(
        SCENARIOS / "sinks" / f"{name}.yaml"
        for name in (
            "delta_numbered",
            "delta_streamed",
            "delta_unnumbered",
            "files_parquet_listed_mid_batch",
            "files_parquet_manifest_mid_batch",
            "iceberg_streamed",
            "kafka_in_transaction",
            "mariadb_added_before_offset_commit",
            "mariadb_away_error_swallowed",
            "mariadb_away_kept_by_id",
            "opensearch_auto_id",
            "opensearch_kept_by_id",
            "python_sqlite_appended",
            "python_sqlite_with_batch",
        )
    ),
    *(
        SCENARIOS / "sources" / f"{name}.yaml"
        for name in (
            "files_appended_mid_batch",
            "python_source_appended_mid_batch",
            "python_source_counter_taken_up_mid_batch",
            "socket_before_offset_commit",
        )
    ),
    *(
        SCENARIOS / f"{name}.yaml"
        for name in (
            "dstreams/received_log_appended_at_most_once",
            "eventhubs/hub_to_hub_mid_batch",
            "hadoop/hdfs_append_namenode_killed_before_offset_commit",
            "s3/sink_listed_mid_batch",
            "s3/sink_manifest_mid_batch",
            "s3/source_upsert_before_offset_commit",
        )
    ),
]
CELLS = {
    "delta_numbered": "kill driver sink-committed (later batch)",
    "delta_streamed": "kill driver sink-committed (later batch)",
    "delta_unnumbered": "kill driver sink-committed (later batch)",
    "iceberg_streamed": "kill driver sink-committed (later batch)",
    "kafka_in_transaction": "kill driver failpoint all-sent (later batch)",
    "opensearch_auto_id": "kill driver failpoint half-indexed (later batch)",
    "opensearch_kept_by_id": "kill driver failpoint half-indexed (later batch)",
    "python_sqlite_appended": "kill driver failpoint half-written (later batch)",
    "python_sqlite_with_batch": "kill driver failpoint half-written (later batch)",
}
"""What is played of a sweep."""
IN_CI = {
    "delta_numbered",
    "files_appended_mid_batch",
    "files_parquet_manifest_mid_batch",
    "kafka_in_transaction",
    "mariadb_away_kept_by_id",
    "offsets_together_at_sink_written",
    "partition_ledger_executor_killed",
    "partition_ledger_mid_sink",
    "python_sqlite_with_batch",
    "received_log_appended_at_most_once",
    "upsert_before_offset_commit",
}
"""The others take longer than CI has time for: they are left to `make prove SUITE=tests`. A violated run takes twice as
long as a held one, since it needs a baseline run."""
APART = {
    "sinks": {"azure", "console", "eventhubs", "hdfs", "iceberg", "opensearch", "s3"},
    "sources": {"azure", "eventhubs", "hdfs", "python", "record_log", "s3"},
}
"""Sinks and sources that no run of CI has: the suites azure, dstreams, eventhubs, hadoop, s3, sinks and sources play
them, and `test_truth.py` the console."""


def of(path: Path) -> Scenario:
    """The scenario, or the cell that is played of a sweep."""
    return alone(path, CELLS[path.stem]) if path.stem in CELLS else load(path)


@pytest.mark.stack
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=() if path.stem in IN_CI else pytest.mark.prove)
        for path in [*PROVING, *OTHERS]
    ],
)
def test_a_scenario_is_as_it_expects(path: Path, run_scenario: Callable[[Scenario], Result]) -> None:
    verdict = run_scenario(of(path)).verdict
    assert verdict.as_expected, (verdict.word, verdict.kinds(), verdict.reasons)


def test_sinks_sources_and_faults_are_in_ci_but_for_those_apart() -> None:
    played = [of(path) for path in [*PROVING, *OTHERS] if path.stem in IN_CI]
    assert len(played) == len(IN_CI)
    assert {sink.kind for scenario in played for sink in scenario.sinks} == SINKS.all().keys() - APART["sinks"]
    assert {scenario.input.source for scenario in played} == SOURCES.all().keys() - APART["sources"]
    assert {step.do.kind for scenario in played for step in scenario.schedule} >= {
        "crash before offset commit",
        "crash mid-sink",
        "kill driver",
        "kill executor",
        "kill mariadb",
    }
