"""Scenarios of the proving suite on the stack `processes`, each as it expects, and some of other sinks and sources.
`make prove` and `make prove SUITE=all` run all of them.

Where there has to be a container engine, `test_containers.py` runs some of them on both stacks; they are not run twice.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.load import load
from harness.run.loop import Result
from harness.scenario import Scenario
from tests import container_engine

SCENARIOS = Path(__file__).parents[1] / "scenarios"
PROVING = sorted((SCENARIOS / "proving").glob("*.yaml"))
SINKS = (
    "delta_streamed_before_offset_commit",
    "files_parquet_listed_mid_batch",
    "iceberg_streamed_before_offset_commit",
    "kafka_in_transaction_mid_sink",
    "mariadb_added_before_offset_commit",
    "mariadb_away_error_swallowed",
    "opensearch_auto_id_mid_batch",
    "python_sqlite_appended_mid_batch",
)
SOURCES = (
    "files_appended_mid_batch",
    "python_source_counter_taken_up_mid_batch",
    "socket_before_offset_commit",
)
ALIKE = {
    "append_before_the_batch",
    "autocommit_mid_sink",
    "checkpoint_apart",
    "checkpoint_shared",
    "checkpoint_temporary",
    "errors_added_once",
    "group_upsert_in_offset_commit",
    "offsets_together_at_offsets_saved",
    "upsert_driver_killed_mid_batch",
}
"""Those that hit the same program, or the same crash point, as another one."""
HERE = [
    path
    for path in PROVING
    if path.stem not in ALIKE and not (container_engine.needed() and container_engine.chosen(path))
] + [
    SCENARIOS / folder / f"{name}.yaml" for folder, names in (("sinks", SINKS), ("sources", SOURCES)) for name in names
]


def test_those_that_are_left_out_are_there() -> None:
    assert not ALIKE - {path.stem for path in PROVING}


@pytest.mark.stack
@pytest.mark.parametrize("path", HERE, ids=lambda path: path.stem)
def test_a_scenario_is_as_it_expects(path: Path, run_scenario: Callable[[Scenario], Result]) -> None:
    verdict = run_scenario(load(path)).verdict
    assert verdict.as_expected, (verdict.word, verdict.kinds(), verdict.reasons)
