"""Scenarios of the proving suite on the stack `processes`, each as it expects, and some of other sinks and sources.

Those that another run of CI stands for are left to `make prove SUITE=tests`; `make prove` and `make prove SUITE=all`
play all that are there.
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

SCENARIOS = Path(__file__).parents[1] / "scenarios"
PROVING = sorted((SCENARIOS / "proving").glob("*.yaml"))
OTHERS = [
    *(
        SCENARIOS / "sinks" / f"{name}.yaml"
        for name in (
            "delta_streamed_before_offset_commit",
            "delta_unnumbered_before_offset_commit",
            "files_parquet_listed_mid_batch",
            "iceberg_streamed_before_offset_commit",
            "kafka_in_transaction_mid_sink",
            "mariadb_added_before_offset_commit",
            "mariadb_away_error_swallowed",
            "mariadb_away_kept_by_id",
            "opensearch_auto_id_mid_batch",
            "python_sqlite_appended_mid_batch",
            "python_sqlite_with_batch_mid_batch",
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
            "dstreams/received_log_appended_done",
            "eventhubs/hub_to_hub_mid_batch",
            "hadoop/hdfs_append_namenode_killed_before_offset_commit",
            "s3/sink_listed_mid_batch",
            "s3/source_upsert_before_offset_commit",
        )
    ),
]
APART = {"azure", "hdfs"}
"""Sinks and sources that `make prove SUITE=azure` and `SUITE=hadoop` play: Azurite comes with 365 MB; `hdfs` lists and
reads as `s3` does, through the same code."""
ALIKE = {
    "append_before_the_batch": "two_systems_append_between",
    "append_driver_killed_mid_batch": "files_parquet_listed_mid_batch",
    "autocommit_executor_killed": "partition_ledger_executor_killed",
    "autocommit_mid_sink": "partition_ledger_mid_sink",
    "checkpoint_apart": "checkpoint_temporary",
    "checkpoint_kept": "checkpoint_temporary",
    "checkpoint_missing": "checkpoint_temporary",
    "checkpoint_shared": "checkpoint_temporary",
    "delta_streamed_before_offset_commit": "delta_unnumbered_before_offset_commit",
    "errors_added": "mariadb_added_before_offset_commit",
    "errors_added_once": "mariadb_added_before_offset_commit",
    "group_append_in_offset_commit": "offsets_after_the_sink",
    "jdbc_before_offset_commit": "delta_unnumbered_before_offset_commit",
    "mariadb_away_error_swallowed": "mariadb_away_kept_by_id",
    "offsets_before_the_sink": "offsets_after_the_sink",
    "offsets_together_at_offsets_saved": "offsets_after_the_sink",
    "offsets_together_at_sink_written": "offsets_after_the_sink",
    "python_source_counter_taken_up_mid_batch": "python_source_appended_mid_batch",
    "python_sqlite_appended_mid_batch": "python_sqlite_with_batch_mid_batch",
    "two_systems_upsert_between": "two_systems_append_between",
    "upsert_driver_killed_mid_batch": "mariadb_away_kept_by_id",
}
"""Those that are left to `make prove SUITE=tests`, and the scenario that stands for each in CI."""
OTHER_TESTS = {
    "append_before_offset_commit": "test_shared_stack.py",
    "group_upsert_in_offset_commit": "test_external.py",
    "upsert_before_offset_commit": "test_shared_stack.py",
}
"""Those that another file of tests plays in CI."""
LONG = {"flights"}
"""Those that CI has no time for, with nothing that stands for them."""
LEFT_OUT = {*ALIKE, *OTHER_TESTS, *LONG}
ELSEWHERE = [SCENARIOS / "examples" / "wordcount.yaml"]
"""In CI, by test_truth.py."""


@pytest.mark.stack
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=pytest.mark.prove if path.stem in LEFT_OUT else ())
        for path in [*PROVING, *OTHERS]
    ],
)
def test_a_scenario_is_as_it_expects(path: Path, run_scenario: Callable[[Scenario], Result]) -> None:
    verdict = run_scenario(load(path)).verdict
    assert verdict.as_expected, (verdict.word, verdict.kinds(), verdict.reasons)


def test_what_stands_for_one_that_is_left_out_is_in_ci() -> None:
    there = {path.stem for path in [*PROVING, *OTHERS]}
    assert there >= LEFT_OUT
    assert set(ALIKE.values()) <= there - LEFT_OUT
    for stem, file in OTHER_TESTS.items():
        assert stem in (Path(__file__).parent / file).read_text(encoding="utf-8"), file


def test_sinks_sources_and_faults_are_in_ci_but_for_those_apart() -> None:
    alone = [path for path in [*PROVING, *OTHERS] if path.stem not in LEFT_OUT]
    played = [load(path) for path in [*alone, *ELSEWHERE]]
    assert {sink.kind for scenario in played for sink in scenario.sinks} == SINKS.all().keys() - APART
    assert {scenario.input.source for scenario in played} == SOURCES.all().keys() - APART
    assert {step.do.kind for scenario in played for step in scenario.schedule} >= {
        "crash before offset commit",
        "crash mid-sink",
        "kill driver",
        "kill executor",
        "kill mariadb",
        "kill namenode",
    }
