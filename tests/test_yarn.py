"""The stack `yarn`: what it refuses, how a pipeline is handed over, how an attempt's end and output are told. The real
one: `test_yarn_runs.py`."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from harness.cli import main
from harness.components.yarn import policy, settings
from harness.components.yarn.asking import Manager
from harness.components.yarn.attempt import Output, told
from harness.components.yarn.containers import ID
from harness.components.yarn.submission import properties, quoted
from harness.errors import UsageError
from harness.faults import fault
from harness.hosts.ports import LOOPBACK
from harness.load import load
from harness.scenario import Restart, Scenario
from harness.stacks.supported import Named, refuse, unsupported

HOUSE = Path(__file__).parents[1]
OWN = HOUSE / "scenarios" / "yarn"
YARN = Named("yarn")


def kills(count: int, **conf: str) -> Scenario:
    """A scenario that ends the driver so often."""
    one = load(OWN / "upsert_mid_batch.yaml")
    return replace(one, schedule=one.schedule * count, pipeline=replace(one.pipeline, conf=conf))


def test_each_scenario_of_its_own_can_be_run_there() -> None:
    assert {path.stem: unsupported(load(path), YARN) for path in OWN.glob("*.yaml")} == {
        path.stem: [] for path in OWN.glob("*.yaml")
    }


@pytest.mark.parametrize(
    ("count", "conf", "refused"),
    [
        (1, {}, False),
        (policy.MOST - 1, {}, False),
        (policy.MOST, {}, True),
        (2, {policy.ATTEMPTS: "2"}, True),
        (2, {policy.ATTEMPTS: "3"}, False),
        # YARN forgets failures that are old.
        (2, {policy.ATTEMPTS: "2", policy.VALIDITY: "1h"}, False),
    ],
)
def test_a_schedule_that_uses_up_the_attempts_is_refused(count: int, conf: dict[str, str], refused: bool) -> None:
    assert bool(unsupported(kills(count, **conf), YARN)) is refused
    assert unsupported(kills(count, **conf), Named("processes")) == []


def test_a_checkpoint_on_a_server_is_seen_there_as_on_processes() -> None:
    kept = [load(path) for path in sorted(HOUSE.glob("scenarios/*/*upsert_mid_batch.yaml"))]
    assert {one.pipeline.checkpoint for one in kept} >= {"hdfs", "s3", "azure"}
    assert not any(unsupported(one, YARN) for one in kept if one.pipeline.checkpoint)


@pytest.mark.parametrize("said", ["none", "0", "-1", "2.5"])
def test_a_number_of_attempts_that_is_none_is_refused(said: str) -> None:
    (words,) = unsupported(kills(1, **{policy.ATTEMPTS: said}), YARN)
    assert said in words


@pytest.mark.parametrize(
    ("restart", "key"),
    [
        (Restart(delay_s=2.0), "restart.after"),
        (Restart(max_restarts=1), "restart.max_restarts"),
        (Restart(standby=True), "restart.standby"),
    ],
)
def test_a_restart_policy_of_ours_is_refused_with_the_stacks_that_have_it(restart: Restart, key: str) -> None:
    scenario = replace(kills(1), restart=restart)
    assert unsupported(scenario, YARN) == [key]
    with pytest.raises(UsageError, match=re.escape(f"asked for `{key}`; the stack `yarn` does not support it (proc")):
        refuse([scenario], YARN)
    assert unsupported(replace(scenario, restart=Restart(standby=False)), YARN) == []


def test_a_program_that_may_end_well_is_refused_for_nobody_starts_it_again() -> None:
    one = kills(1)
    stopped = replace(one, schedule=(replace(one.schedule[0], do=fault("stop driver")),))
    with pytest.raises(UsageError) as refused:
        refuse([stopped], YARN)
    why = "a program that ends well on it is not started again there; take kill driver"
    others = "(processes, containers and external do)"
    assert f"asked for `stop driver: {why}`; the stack `yarn` does not support it {others}" in str(refused.value)
    assert {name: unsupported(stopped, Named(name)) for name in ("processes", "containers", "external")} == {
        name: [] for name in ("processes", "containers", "external")
    }


def test_validate_says_it_for_the_stack_that_is_named(tmp_path: Path) -> None:
    text = (OWN / "upsert_mid_batch.yaml").read_text(encoding="utf-8")
    path = HOUSE / "scenarios" / "yarn" / "upsert_mid_batch.yaml"
    own = tmp_path / "one.yaml"
    own.write_text(text.replace("pipelines/", f"{HOUSE}/pipelines/") + "restart: {after: 2s}\n", encoding="utf-8")
    codes = [CliRunner().invoke(main, ["validate", str(each), "--stack", "yarn"]).exit_code for each in (path, own)]
    assert codes == [0, 2]


def test_its_daemons_faults_are_of_no_other_stack() -> None:
    for kind, name in (("kill nodemanager", "upsert_nodemanager_killed"), ("restart resourcemanager", None)):
        assert fault(kind, for_s=3.0).kind == kind
        if name is not None:
            scenario = load(OWN / f"{name}.yaml")
            stacks = ("processes", "containers", "external", "yarn")
            assert {each: unsupported(scenario, Named(each)) for each in stacks} == {
                **{other: [kind] for other in stacks[:3]},
                "yarn": [],
            }


def test_runs_go_one_after_the_other_and_no_driver_waits_ready() -> None:
    from harness.suite.options import Options, fitted

    jobs, (one, *_) = fitted(Options(stack="yarn"), [kills(1)] * 4)
    assert (jobs, one.restart.standby) == (1, False)


class TestHandedOver:
    """What spark-submit is given."""

    def test_a_value_reaches_the_container_as_it_is(self) -> None:
        value = 'a$b "c" `d` \\e'
        said = subprocess.run(
            ["/bin/bash", "-c", f'export X="{quoted(value)}"; printf %s "$X"'],
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout == value

    def test_properties_are_what_java_reads(self) -> None:
        # By the rules of java.util.Properties.load.
        text = properties({"a b=c": " x=y\\z", "spark.d": "ü\nnext 😀"})
        assert text == "a\\ b\\=c=\\ x=y\\\\z\nspark.d=\\u00fc\\nnext \\ud83d\\ude00\n"

    def test_every_address_is_loopback_and_every_port_ours(self, tmp_path: Path) -> None:
        at = settings.ports()
        folders = settings.Folders(tmp_path / "yarn", tmp_path / "logs")
        settings.write(folders, at, "s-1")
        found = {
            each.findtext("name"): each.findtext("value") or ""
            for each in ElementTree.parse(folders.conf / "yarn-site.xml").iter("property")
        }
        addresses = {value for name, value in found.items() if str(name).endswith("address")}
        assert addresses == {str(port) for port in at.values()} and len(addresses) == len(at)
        assert {v for n, v in found.items() if str(n).endswith(("hostname", "bind-host"))} == {LOOPBACK}
        assert "ONCEPROOF_SESSION=s-1" in found["yarn.nodemanager.admin-env"].split(",")
        places = [each for value in found.values() for each in value.split(",") if each.startswith(("/", "file:"))]
        assert len(places) >= 4 and all(str(tmp_path) in each for each in places)
        for port in at.values():
            port.release()


class TestAttempt:
    """How an attempt is told."""

    @pytest.mark.parametrize(("shell", "status"), [(0, 0), (1, 1), (137, -9), (143, -15), (-100, 1), (13, 13)])
    def test_its_end_is_a_process_s(self, shell: int, status: int) -> None:
        assert told(shell) == status

    def test_a_container_says_whose_it_is_also_after_a_restart_of_resourcemanager(self) -> None:
        found = [ID.fullmatch(f"container_{epoch}17_0001_02_000001") for epoch in ("", "e03_")]
        assert [each and (each[1], int(each[2])) for each in found] == [("17_0001", 2)] * 2

    def test_its_output_is_copied_as_it_comes_and_no_line_is_torn(self, tmp_path: Path) -> None:
        folder, log = tmp_path / "container", tmp_path / "driver-1.log"
        folder.mkdir()
        log.write_text("submitted\n")
        output = Output(log)
        output.follow(tmp_path / "none")
        (folder / "stderr").write_text("one\ntw")
        output.follow(folder)
        assert log.read_text() == "submitted\none\n"
        (folder / "stdout").write_text("said")
        (folder / "stderr").write_text("one\ntwo")
        output.follow(folder, last=True)
        assert log.read_text() == "submitted\none\ntwosaid"

    def test_what_nodemanager_deletes_is_read_all_the_same(self, tmp_path: Path) -> None:
        log = tmp_path / "driver-1.log"
        output = Output(log)
        with (tmp_path / "stderr").open("a") as said:
            print("one", file=said, flush=True)
            output.follow(tmp_path)
            (tmp_path / "stderr").unlink()
            print("two", file=said, flush=True)
        output.follow(tmp_path, last=True)
        assert log.read_text() == "one\ntwo\n"

    def test_nobody_there_is_no_answer(self) -> None:
        nobody = Manager("127.0.0.1:1")
        assert (nobody.attempts("application_1_1"), nobody.over("application_1_1"), nobody.node_since_ms()) == (
            None,
            "",
            0,
        )
