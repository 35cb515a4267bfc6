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
from harness.components.yarn.attempt import Output, exit_status
from harness.components.yarn.containers import ID
from harness.components.yarn.rest_api import Manager
from harness.components.yarn.submission import as_elsewhere, quoted
from harness.errors import UsageError
from harness.faults import fault
from harness.hosts.ports import LOOPBACK
from harness.load import load
from harness.scenario import Restart, Scenario, Step, Victim
from harness.spark.beside import properties
from harness.stacks.supported import refuse, unsupported
from harness.triggers import TRIGGERS

HOUSE = Path(__file__).parents[1]
OWN = HOUSE / "scenarios" / "yarn"
YARN = "yarn"


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
        # YARN forgets failures that are old, but starts nobody anew who may have one attempt.
        (3, {policy.ATTEMPTS: "2", policy.VALIDITY: "1s"}, False),
        (1, {policy.ATTEMPTS: "1", policy.VALIDITY: "1s"}, True),
    ],
)
def test_a_schedule_that_uses_up_the_attempts_is_refused(count: int, conf: dict[str, str], refused: bool) -> None:
    assert bool(unsupported(kills(count, **conf), YARN)) is refused
    assert unsupported(kills(count, **conf), "processes") == []


SOON = ["1s", " 4M ", "4min", "200", "299000ms", "1ms"]
# As long as the scenario's time, or longer, which the first and the last end cannot be apart.
LATE = ["24h", "5min", "5m", "300s", "300000", "1d", f"{10**17}h"]
NEVER = ["-1", "0", "0s", "999us", "", "soon", "1.5s", "1 s", "1w", "9" * 4400]


@pytest.mark.parametrize("said", [*SOON, *LATE, *NEVER], ids=lambda said: said[:20])
def test_ends_are_forgotten_after_a_time_that_spark_reads_and_the_run_has(said: str) -> None:
    two = kills(2, **{policy.ATTEMPTS: "2", policy.VALIDITY: said})
    assert two.timeout_s == 300.0
    assert bool(unsupported(two, YARN)) is (said not in SOON)


def test_a_single_step_that_uses_up_the_attempts_is_told_as_one() -> None:
    assert unsupported(kills(1, **{policy.ATTEMPTS: "1"}), YARN) == [
        f"one step that ends the driver, with {policy.ATTEMPTS}: 1: none is left; raise {policy.ATTEMPTS} to 2"
    ]


def at(*seconds: float, conf: dict[str, str], victim: Victim = Victim.TREE) -> list[str]:
    """What is said of kills at these times, the last one of that victim."""
    faults = [*[fault("kill driver")] * (len(seconds) - 1), fault("kill driver", victim=victim)]
    whens = (TRIGGERS["elapsed"].trigger(each) for each in seconds)
    steps = tuple(Step(when=when, do=do) for when, do in zip(whens, faults, strict=True))
    return unsupported(replace(kills(1, **conf), schedule=steps), YARN)


def test_what_yarn_forgets_lies_before_as_many_ends_as_it_has_attempts() -> None:
    two = {policy.ATTEMPTS: "2", policy.VALIDITY: "20s"}
    assert at(5.0, 30.0, conf=two) == at(5.0, 30.0, 60.0, conf=two) == []
    for close in ((5.0, 25.0), (5.0, 30.0, 45.0), (5.0, 10.0, 45.0)):
        count = len(close)
        assert at(*close, conf=two) == [
            f"{count} steps that end the driver, with {policy.ATTEMPTS}: 2 and {policy.VALIDITY}: 20s: none is left; "
            f"raise {policy.ATTEMPTS} to {count + 1}"
        ]
        assert at(*close, conf={**two, policy.ATTEMPTS: str(count + 1)}) == []
    assert at(5.0, 15.0, 30.0, conf={**two, policy.ATTEMPTS: "3"}) == []


@pytest.mark.parametrize(("held", "refused"), [("9s", False), ("10s", True)])
def test_what_lies_between_a_row_and_a_time_is_no_longer_than_that_time(held: str, refused: bool) -> None:
    row = kills(1, **{policy.ATTEMPTS: "2", policy.VALIDITY: held})
    (kill,) = row.schedule
    later = replace(row, schedule=(kill, replace(kill, when=TRIGGERS["elapsed"].trigger(10.0))))
    assert bool(unsupported(later, YARN)) is refused
    earlier = replace(later, schedule=later.schedule[::-1], timeout_s=20.0)
    assert bool(unsupported(earlier, YARN)) is refused


def test_a_program_that_fails_in_its_last_attempt_by_number_is_over_whatever_yarn_forgets() -> None:
    conf = {policy.ATTEMPTS: "2", policy.VALIDITY: "1s"}
    refused = {victim: said for victim in Victim if (said := at(5.0, 30.0, conf=conf, victim=victim))}
    assert refused == {Victim.PYTHON: [ALONE.format(2, 2, 3)]}


ALONE = (
    f"victim: python in attempt {{}}, with {policy.ATTEMPTS}: {{}}: its ApplicationMaster says there that the "
    f"application has failed; raise {policy.ATTEMPTS} to {{}}"
)


TWO = f"2 steps that end the driver, with {policy.ATTEMPTS}: 2: none is left"


def test_an_outage_of_what_keeps_the_checkpoint_is_an_end_for_yarn() -> None:
    one = load(OWN / "hdfs_upsert_namenode_killed_mid_batch.yaml")
    alone = replace(one, pipeline=replace(one.pipeline, conf={policy.ATTEMPTS: "1"}))
    assert unsupported(alone, YARN) == [
        f"one step that ends the driver, with {policy.ATTEMPTS}: 1: none is left; raise {policy.ATTEMPTS} to 2"
    ]
    assert unsupported(replace(alone, pipeline=replace(alone.pipeline, checkpoint="")), YARN) == []


@pytest.mark.parametrize(
    ("kinds", "most", "said"),
    [
        # An attempt that is lost with its node is not counted as failed, but has a number.
        (("node", "python"), 2, [ALONE.format(2, 2, 3)]),
        (("node", "python"), 3, []),
        (("node", "node", "python"), 3, [ALONE.format(3, 3, 4)]),
        (("driver", "node", "python"), 3, [ALONE.format(3, 3, 4)]),
        (("python", "node"), 2, []),
        (("node", "driver"), 2, []),
        (("node", "node"), 2, []),
        (("away", "python"), 2, [f"{TWO}; raise {policy.ATTEMPTS} to 3"]),
        # One number is enough for both.
        (("node", "driver", "python"), 2, [f"{TWO}; raise {policy.ATTEMPTS} to 4"]),
    ],
)
def test_a_lost_node_raises_the_number_of_the_attempt_in_which_a_program_dies_alone(
    kinds: tuple[str, ...], most: int, said: list[str]
) -> None:
    faults = {
        "node": fault("kill nodemanager", for_s=1.0),
        "python": fault("kill driver", victim=Victim.PYTHON),
        "driver": fault("kill driver"),
        "away": fault("kill driver without resourcemanager", for_s=1.0),
    }
    one = kills(1, **{policy.ATTEMPTS: str(most)})
    (kill,) = one.schedule
    schedule = tuple(replace(kill, do=faults[kind]) for kind in kinds)
    assert unsupported(replace(one, schedule=schedule), YARN) == said
    raised = {policy.ATTEMPTS: said[0].rpartition(" ")[2]} if said else {}
    enough = replace(one, schedule=schedule, pipeline=replace(one.pipeline, conf={**one.pipeline.conf, **raised}))
    assert unsupported(enough, YARN) == []


def test_a_checkpoint_on_a_server_is_seen_there_as_on_processes() -> None:
    kept = [load(path) for path in sorted(HOUSE.glob("scenarios/*/*upsert_mid_batch.yaml"))]
    assert {one.pipeline.checkpoint for one in kept} >= {"hdfs", "s3", "azure"}
    assert not any(unsupported(one, YARN) for one in kept if one.pipeline.checkpoint)


@pytest.mark.parametrize("said", ["none", "0", "-1", "2.5", "", "000", "\N{ARABIC-INDIC DIGIT TWO}", "2147483648"])
def test_a_number_of_attempts_that_is_none_is_refused(said: str) -> None:
    (words,) = unsupported(kills(1, **{policy.ATTEMPTS: said}), YARN)
    assert words == f"{policy.ATTEMPTS}: {said}, which is no whole number from 1 to 2147483647"


def test_a_number_of_attempts_that_python_does_not_read_is_refused_in_short() -> None:
    (words,) = unsupported(kills(1, **{policy.ATTEMPTS: "9" * 4400}), YARN)
    assert words == f"{policy.ATTEMPTS}: {'9' * 40}..., which is no whole number from 1 to 2147483647"
    assert [unsupported(kills(1, **{policy.ATTEMPTS: said}), YARN) for said in ("02", " 2 ", "0" * 4400 + "2")] == [
        []
    ] * 3


@pytest.mark.parametrize(
    ("restart", "key"),
    [
        (Restart(delay_s=2.0), "restart.after"),
        (Restart(max_restarts=1), "restart.max_restarts"),
    ],
)
def test_a_restart_policy_of_ours_is_refused_with_the_stacks_that_have_it(restart: Restart, key: str) -> None:
    scenario = replace(kills(1), restart=restart)
    assert unsupported(scenario, YARN) == [key]
    with pytest.raises(UsageError, match=re.escape(f"asked for `{key}`; the stack `yarn` does not support it (proc")):
        refuse([scenario], YARN)


def test_a_program_that_may_end_well_is_refused_for_nobody_starts_it_again() -> None:
    one = kills(1)
    stopped = replace(one, schedule=(replace(one.schedule[0], do=fault("stop driver")),))
    with pytest.raises(UsageError) as refused:
        refuse([stopped], YARN)
    why = "a program that ends well on it is not started again there; take kill driver"
    others = "(processes, containers and external do)"
    assert f"asked for `stop driver: {why}`; the stack `yarn` does not support it {others}" in str(refused.value)
    assert {name: unsupported(stopped, name) for name in ("processes", "containers", "external")} == {
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
    for kind, name in (
        ("kill nodemanager", "upsert_nodemanager_killed"),
        ("restart resourcemanager", None),
        ("kill driver without resourcemanager", "upsert_without_resourcemanager_mid_batch"),
    ):
        assert fault(kind, for_s=3.0).kind == kind
        if name is not None:
            scenario = load(OWN / f"{name}.yaml")
            stacks = ("processes", "containers", "external", "yarn")
            assert {each: unsupported(scenario, each) for each in stacks} == {
                **{other: [kind] for other in stacks[:3]},
                "yarn": [],
            }


class TestHandedOver:
    """What spark-submit is given."""

    @pytest.mark.subprocess
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

    def test_a_pipeline_has_hadoop_s_settings_as_on_other_stacks(self, tmp_path: Path) -> None:
        """Spark ships the daemons' folder of settings into each container."""
        at = settings.ports()
        folders = settings.Folders(tmp_path / "yarn", tmp_path / "logs")
        settings.write(folders, at, "s-1")
        core = {
            each.findtext("name"): each for each in ElementTree.parse(folders.conf / "core-site.xml").iter("property")
        }
        # A path without a scheme is one of this machine by default, too; nobody asks a pipeline over HTTP.
        ours = set(core) - {"fs.defaultFS", "hadoop.http.staticuser.user"}
        given = as_elsewhere(tmp_path / "run")
        assert {f"spark.hadoop.{name}" for name in ours} == set(given)
        assert given["spark.hadoop.hadoop.tmp.dir"] == str(tmp_path / "run")
        for port in at.values():
            port.release()


class TestAttempt:
    """How an attempt is told."""

    @pytest.mark.parametrize(("shell", "status"), [(0, 0), (1, 1), (137, -9), (143, -15), (-100, 1), (13, 13)])
    def test_its_end_is_a_process_s(self, shell: int, status: int) -> None:
        assert exit_status(shell) == status

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
