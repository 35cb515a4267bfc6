"""What a user sees of the set-up: which Java is taken, how jars are fetched, refused and kept, what doctor says."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.cli import doctor
from harness.component import MachineCheck
from harness.errors import StackError, WaitError
from harness.machine import cache, jars, java, published, spark_versions
from harness.wait import locked
from tests.limits import PROCESS_S, examples

# Stands in for Java running Ivy: writes its arguments down and leaves a jar of each name where Ivy would retrieve them.
IVY = """#!/bin/sh
echo "$@" >> "{log}"
while [ "$1" != -retrieve ]; do shift; done
into=$(dirname "$2")
grep -q 'module="spark"' "$into/ivy.xml" && names="{spark}" || names="{broker}"
for name in $names; do echo "bytes of $name" > "$into/$name"; done
"""
BROKER = ("kafka_2.13-4.2.0.jar", "re2j-1.8.jar")
SPARK = ("spark-sql-kafka-0-10_2.13-4.1.1.jar", "postgresql-42.7.14.jar")
NOWHERE = java.Java(home=Path("nowhere"), executable=Path("nowhere/bin/java"), feature=17, text="")


def fake_java(home: Path, version: str, *, code: int = 0) -> Path:
    """A program that says it is this Java; returns its home."""
    (home / "bin").mkdir(parents=True)
    said = f'    java.home = {home}\\nopenjdk version "{version}" 2026-01-01\\n'
    script(home / "bin" / "java", f"#!/bin/sh\nprintf '{said}' >&2\nexit {code}\n")
    return home


def script(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of our own, with no pins."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv(jars.MIRROR, raising=False)
    monkeypatch.setattr(jars, "PINS", tmp_path / "jars.sha256")
    return tmp_path


@pytest.fixture
def ivy(empty: Path) -> java.Java:
    """A Java whose Ivy always succeeds; what it was asked stands in ivy.log."""
    shipped = "spark-tags_2.13-9.9.9.jar"
    text = IVY.format(log=empty / "ivy.log", broker=" ".join(BROKER), spark=" ".join((*SPARK, shipped)))
    return java.Java(home=empty, executable=script(empty / "java", text), feature=17, text="")


def runs(folder: Path) -> list[str]:
    """The command line of each Ivy that ran."""
    return (folder / "ivy.log").read_text(encoding="utf-8").splitlines()


class TestJava:
    def test_the_wish_is_the_only_place_looked_at(self, tmp_path: Path) -> None:
        wish, other = fake_java(tmp_path / "wish", "25.0.1"), fake_java(tmp_path / "other", "17.0.15")
        environ = {java.VARIABLE: str(wish), "JAVA_HOME": str(other), "PATH": str(other / "bin")}
        with pytest.raises(StackError) as refused:
            java.find(environ, system=tmp_path)
        message = str(refused.value)
        assert f"java 25 at {wish}" in message
        assert "openjdk-17-jre-headless" in message
        assert "\n" not in message

    @pytest.mark.parametrize(("version", "feature"), [("17.0.15", 17), ("21.0.5", 21)])
    def test_both_lines_fit(self, tmp_path: Path, version: str, feature: int) -> None:
        home = fake_java(tmp_path / "home", version)
        found = java.find({"JAVA_HOME": str(home)}, system=tmp_path / "none")
        assert (found.feature, found.home, found.executable) == (feature, home, home / "bin" / "java")
        assert version in found.text

    def test_an_unfit_one_is_passed_over(self, tmp_path: Path) -> None:
        new, old = fake_java(tmp_path / "new", "25"), fake_java(tmp_path / "old", "1.8.0_392")
        fit = fake_java(tmp_path / "system" / "seventeen", "17.0.1")
        environ = {"JAVA_HOME": str(new), "PATH": str(old / "bin")}
        found = java.find(environ, system=tmp_path / "system")
        assert found.home == fit
        assert found.instead == f"JAVA_HOME: java 25 at {new}; Spark and Kafka run on {fit}"
        assert java.find({"JAVA_HOME": str(fit), "PATH": str(old / "bin")}, system=tmp_path / "none").instead == ""
        assert java.find({"PATH": str(old / "bin")}, system=tmp_path / "system").instead == ""

    def test_every_unfit_one_is_named(self, tmp_path: Path) -> None:
        new, old = fake_java(tmp_path / "new", "25"), fake_java(tmp_path / "old", "1.8.0_392")
        environ = {"JAVA_HOME": str(new), "PATH": str(old / "bin")}
        with pytest.raises(StackError, match=f"java 25 at {new}, java 8 at {old};"):
            java.find(environ, system=tmp_path / "none")

    def test_none_at_all(self, tmp_path: Path) -> None:
        with pytest.raises(StackError, match="found no java;"):
            java.find({"PATH": str(tmp_path)}, system=tmp_path)

    def test_a_broken_one_is_named(self, tmp_path: Path) -> None:
        home = fake_java(tmp_path / "home", "17.0.1", code=1)
        with pytest.raises(StackError, match=f"no working java at {home}"):
            java.find({"JAVA_HOME": str(home)}, system=tmp_path / "none")

    def test_make_gets_one_line_and_a_code(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv(java.VARIABLE, str(fake_java(tmp_path / "unfit", "11.0.1")))
        assert java.main() == 4
        assert capsys.readouterr().err.count("\n") == 1
        monkeypatch.setenv(java.VARIABLE, str(fake_java(tmp_path / "fit", "21.0.1")))
        assert java.main() == 0
        assert "java 21" in capsys.readouterr().out


class TestCache:
    def test_three_places_in_turn(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(cache.VARIABLE, "/own/place")
        monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
        monkeypatch.setenv("HOME", "/home/me")
        assert cache.root() == Path("/own/place")
        monkeypatch.delenv(cache.VARIABLE)
        assert cache.root() == Path("/xdg/onceproof")
        monkeypatch.delenv("XDG_CACHE_HOME")
        assert cache.root() == Path("/home/me/.cache/onceproof")

    def test_only_its_user_may_read(self, empty: Path) -> None:
        made = cache.folder("a", "b")
        assert made == empty / "cache" / "a" / "b"
        assert [stat.S_IMODE(path.stat().st_mode) for path in (made, made.parent, made.parent.parent)] == [0o700] * 3

    def test_a_file_in_the_way_is_said(self, empty: Path) -> None:
        (empty / "cache").write_text("", encoding="utf-8")
        with pytest.raises(StackError, match=f"cannot make the cache folder .*{cache.VARIABLE}"):
            cache.folder("a")

    def test_one_holder_at_a_time(self, empty: Path) -> None:
        path = cache.folder() / "lock"
        held, late = locked(path, within_s=1), locked(path, within_s=0.1)
        with held, pytest.raises(WaitError, match="another process holds it"), late:
            pass
        with locked(path, within_s=1):
            assert path.exists()

    @pytest.mark.subprocess
    def test_a_dead_holder_lets_go(self, empty: Path) -> None:
        path = cache.folder() / "lock"
        code = (
            "import sys; from pathlib import Path; from harness.wait import locked\n"
            "with locked(Path(sys.argv[1]), within_s=60):\n    print('held', flush=True); sys.stdin.read()"
        )
        command = [sys.executable, "-c", code, str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(WaitError), locked(path, within_s=0.1):
                pass
            holder.send_signal(signal.SIGKILL)
        with locked(path, within_s=60):
            assert holder.returncode == -signal.SIGKILL

    def test_what_failed_half_way_is_gone(self, empty: Path) -> None:
        target = cache.folder() / "target"
        with cache.filling(target) as temporary:
            (temporary / "old").write_text("old", encoding="utf-8")
        with pytest.raises(OSError, match="full"), cache.filling(target) as temporary:
            (temporary / "new").write_text("half", encoding="utf-8")
            raise OSError("full")
        assert [path.name for path in target.parent.iterdir()] == ["target"]
        assert [path.name for path in target.iterdir()] == ["old"]


class TestJars:
    def test_fetched_once_and_then_no_java_is_started(self, empty: Path, ivy: java.Java) -> None:
        assert jars.cached() is None
        first = jars.resolve(ivy)
        assert tuple(path.name for path in first.broker) == BROKER
        assert len(runs(empty)) == 2
        assert jars.resolve(NOWHERE) == first == jars.cached()

    def test_what_pyspark_ships_is_left_out(self, ivy: java.Java) -> None:
        assert {path.name for path in jars.resolve(ivy).spark} == set(SPARK)

    def test_only_central_and_our_own_cache_are_looked_at(self, empty: Path, ivy: java.Java) -> None:
        folder = jars.resolve(ivy).broker[0].parent
        resolvers = ElementTree.parse(folder / "ivysettings.xml").getroot().findall("resolvers/*")
        assert [(each.tag, each.get("m2compatible"), each.get("root")) for each in resolvers] == [
            ("ibiblio", "true", None)
        ]
        for line in runs(empty):
            assert f"-Divy.default.ivy.user.dir={empty / 'cache'}" in line
            assert "-types jar bundle" in line
            assert f"-cache {empty / 'cache' / 'ivy'}" in line

    def test_a_mirror_of_the_users_own(self, empty: Path, ivy: java.Java, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(jars.MIRROR, 'http://localhost/a"b')
        folder = jars.resolve(ivy).broker[0].parent
        resolver = ElementTree.parse(folder / "ivysettings.xml").getroot().find("resolvers/ibiblio")
        assert resolver is not None
        assert resolver.get("root") == 'http://localhost/a"b'

    def test_one_jar_of_several_is_asked_for_without_what_it_depends_on(self, ivy: java.Java) -> None:
        folder = jars.fetched("s3", ivy)[0].parent
        (wanted,) = ElementTree.parse(folder / "ivy.xml").getroot().findall("dependencies/dependency")
        (artifact,) = wanted
        assert (wanted.get("name"), wanted.get("transitive"), artifact.get("type")) == ("s3proxy", "false", "jar")
        assert artifact.get("{http://ant.apache.org/ivy/maven}classifier") == "jar-with-dependencies"

    def test_a_jar_that_is_asked_for_alone_is_not_left_out_with_its_makers_others(self, ivy: java.Java) -> None:
        folder = jars.fetched("spark-s3", ivy)[0].parent
        named = ElementTree.parse(folder / "ivy.xml").getroot()
        wanted = {each.get("name"): each.get("rev") for each in named.findall("dependencies/dependency")}
        left_out = {each.get("org") for each in named.findall("dependencies/exclude")}
        assert wanted["hadoop-aws"] == jars.shipped_version(jars.spark_home(), "hadoop-client-api")
        assert ("org.apache.hadoop" in left_out, "org.slf4j" in left_out) == (False, True)

    def test_the_connector_follows_the_installed_spark(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = [each.key() for each in jars.jar_folders()]
        assert jars.neighbours("spark") == []
        monkeypatch.setattr("importlib.metadata.version", lambda _: "4.2.9")
        broker, spark = jars.jar_folders()
        assert str(spark.wanted[0]) == "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
        assert broker.key() == before[0]
        assert spark.key() != before[1]
        near = jars.neighbours("spark")
        assert near == [str(each) for each in spark.wanted[:2]]
        assert jars.installed_spark([]) == {"version": "4.2.9", "neighbours": near}

    def test_one_jar_of_sparks_may_be_older_than_another(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("importlib.metadata.version", lambda _: "4.1.4")
        wanted = [f"{each.name}:{each.version}" for each in jars.jar_folders()[1].wanted[:2]]
        assert wanted == ["spark-sql-kafka-0-10_2.13:4.1.3", "spark-token-provider-kafka-0-10_2.13:4.1.1"]
        more = {*jars.installed_spark(["s3"])["neighbours"]} - {*jars.installed_spark([])["neighbours"]}
        assert more == {"org.apache.spark:spark-hadoop-cloud_2.13:4.1.1@jar"}

    def test_what_is_asked_for_by_name_is_taken_in_that_version_by_all(self, ivy: java.Java) -> None:
        asked = ElementTree.parse(jars.resolve(ivy).spark[0].parent / "ivy.xml").getroot()
        both = [
            {(each.get("org"), each.get(name), each.get("rev")) for each in asked.findall(f"dependencies/{tag}")}
            for tag, name in (("dependency", "name"), ("override", "module"))
        ]
        assert both[0] == both[1] != set()

    @pytest.mark.parametrize("version", ["4.9.9", "4.3.0", "3.4.1"])
    def test_a_spark_that_has_no_connector_is_refused_with_those_that_have(
        self, monkeypatch: pytest.MonkeyPatch, version: str
    ) -> None:
        monkeypatch.setattr("importlib.metadata.version", lambda _: version)
        words = rf"needs spark-sql-kafka-0-10: .* 3\.5\.7, 4\.0\.0, .*, 4\.2\.0, and not for {version}; take one"
        with pytest.raises(StackError, match=words):
            jars.jar_folders()

    @pytest.mark.parametrize(
        ("version", "wanted"),
        [("3.5.2", "3.5.1"), ("3.5.4", "3.5.3"), ("3.5.9", "3.5.7"), ("4.0.0", "4.0.0"), ("4.1.4.dev1", "4.1.1")],
    )
    def test_the_nearest_patch_release_is_taken_and_the_older_of_two(self, version: str, wanted: str) -> None:
        assert published.nearest(version, ["3.5.1", "3.5.3", "3.5.7", "4.0.0", "4.1.1"]) == wanted

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(40))
    @given(place=st.integers(min_value=0, max_value=10_000), bit=st.integers(min_value=0, max_value=7))
    def test_one_flipped_bit_is_refused(self, ivy: java.Java, place: int, bit: int) -> None:
        path = jars.resolve(ivy).broker[0]
        whole = path.read_bytes()
        flipped = bytearray(whole)
        flipped[place % len(whole)] ^= 1 << bit
        path.write_bytes(flipped)
        try:
            with pytest.raises(StackError, match=f"{path} is not the jar it must be.*remove the folder {path.parent}"):
                jars.resolve(NOWHERE)
        finally:
            path.write_bytes(whole)

    def test_a_missing_jar_is_refused(self, ivy: java.Java) -> None:
        path = jars.resolve(ivy).spark[0]
        path.unlink()
        with pytest.raises(StackError, match=f"{path.name}.*no such file"):
            jars.cached()

    def test_the_pin_outweighs_what_was_fetched(self, empty: Path, ivy: java.Java) -> None:
        jars.PINS.write_text(f"{'0' * 64}  {BROKER[1]}\n", encoding="utf-8")
        with pytest.raises(StackError, match=f"{BROKER[1]} is not the jar it must be: wanted sha256 0000"):
            jars.resolve(ivy)

    def test_the_digest_changes_with_any_jar(self, ivy: java.Java) -> None:
        before = jars.resolve(ivy)
        path = before.spark[0]
        path.write_bytes(b"another")
        manifest = json.loads((path.parent / jars.MANIFEST).read_text(encoding="utf-8"))
        manifest[path.name] = sha256(path)
        (path.parent / jars.MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
        assert jars.resolve(NOWHERE).digest != before.digest

    @pytest.mark.parametrize(
        ("said", "words"),
        [
            ("\tHost central not found. url=x", "the host cannot be reached"),
            (":: org.apache.spark#missing;1.0: not found", "not found: org.apache.spark:missing:1.0"),
            ("SERVER ERROR: Bad Gateway url=x", "SERVER ERROR: Bad Gateway"),
            ("", "Ivy said nothing"),
        ],
    )
    def test_a_fetch_that_fails_names_the_coordinate(self, empty: Path, said: str, words: str) -> None:
        program = script(empty / "java", f"#!/bin/sh\nprintf '%s' '{said}'\nexit 1\n")
        with pytest.raises(StackError) as refused:
            jars.resolve(java.Java(home=empty, executable=program, feature=17, text=""))
        assert "cannot fetch org.apache.kafka:kafka_2.13:4.2.0" in str(refused.value)
        assert words in str(refused.value)
        assert list((empty / "cache" / "jars").glob("*broker*4*")) == []

    def test_two_suites_at_once_fetch_once(self, empty: Path, ivy: java.Java) -> None:
        gate = threading.Barrier(4)

        def one(_: int) -> jars.Jars:
            gate.wait(timeout=60)
            return jars.resolve(ivy)

        with ThreadPoolExecutor(4) as pool:
            assert len(set(pool.map(one, range(4)))) == 1
        assert len(runs(empty)) == 2

    def test_every_jar_is_pinned(self) -> None:
        names = set(jars.pins())
        assert {BROKER[0], SPARK[1]} <= names
        assert {str(each.wanted[0].name) for each in jars.jar_folders()} <= {name.rpartition("-")[0] for name in names}
        assert all(len(digest) == 64 for digest in jars.pins().values())

    def test_make_gets_one_line_and_a_code(
        self, empty: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv(java.VARIABLE, str(empty))
        assert jars.main([]) == 4
        assert capsys.readouterr().err.count("\n") == 1

    def test_make_is_told_the_folders(
        self, ivy: java.Java, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = jars.resolve(ivy)
        # The class paths that are fetched on demand come from there too.
        monkeypatch.setattr(java, "find", lambda: ivy)
        assert jars.main([]) == 0
        assert str(found.broker[0].parent) in capsys.readouterr().out
        # The environment of another version of Spark would be installed.
        monkeypatch.setattr(spark_versions, "PINNED", {})
        assert jars.main(["--pin"]) == 0
        assert f"{sha256(found.spark[0])}  {found.spark[0].name}" in capsys.readouterr().out.splitlines()


@pytest.mark.stack
def test_the_real_jars_are_all_pinned_and_whole() -> None:
    found = jars.resolve()
    assert len(found.broker) > 20
    more = [path for name in jars.declared() if name not in ("broker", "spark") for path in jars.fetched(name)]
    assert {path.name for path in (*found.broker, *found.spark, *more)} <= set(jars.pins())


class Listed(list[Any]):
    """Stands in for a registry."""

    def all(self) -> dict[str, Any]:
        return {each.about.name: each for each in self}


class TestDoctor:
    def test_each_lack_has_a_cure(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(java.VARIABLE, str(fake_java(tmp_path / "java", "25.0.1")))
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file" / "cache"))
        (tmp_path / "file").write_text("", encoding="utf-8")
        seen = {each.name: each for each in doctor.check()}
        assert {name for name, each in seen.items() if not each.ok} >= {"java", "disk", "docker"}
        assert seen["jars"].found == "none yet; the first run fetches them, with a network"
        assert all(each.cure for each in seen.values() if not each.ok)
        assert "java 25" in seen["java"].found
        assert not doctor.fit([*seen.values()])

    def test_a_java_that_the_installed_spark_does_not_run_on_is_a_lack(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(java.VARIABLE, str(fake_java(tmp_path / "java", "21.0.5")))
        assert doctor._java().startswith("21 at ")
        monkeypatch.setattr(spark_versions, "own", lambda: "3.5")
        with pytest.raises(StackError, match=r"Spark 3\.5 needs Java 17; found java 21 at "):
            doctor._java()

    def test_a_corrupted_jar_is_found(self, ivy: java.Java) -> None:
        path = jars.resolve(ivy).spark[0]
        assert next(each for each in doctor.check() if each.name == "jars").ok
        path.write_bytes(b"")
        seen = next(each for each in doctor.check() if each.name == "jars")
        assert not seen.ok
        assert path.name in seen.found

    def test_nothing_it_looks_at_can_raise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object, **__: object) -> None:
            raise RuntimeError("out of order")

        for module, name in (
            (java, "find"),
            (jars, "cached"),
            (jars, "neighbours"),
            (cache, "folder"),
            (subprocess, "run"),
        ):
            monkeypatch.setattr(module, name, broken)
        lacks = [each for each in doctor.check() if not each.ok]
        assert {each.name for each in lacks} >= {"java", "jars", "spark", "disk", "postgres"}
        assert any("out of order" in each.found for each in lacks)

    def test_a_component_that_cannot_say_what_it_needs_hides_no_other(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Broken:
            about = SimpleNamespace(name="broken")

            @property
            def machine_checks(self) -> list[MachineCheck]:
                raise RuntimeError("out of order")

        whole = SimpleNamespace(
            about=SimpleNamespace(name="whole"), machine_checks=[MachineCheck("whole", "any", lambda: "there", "")]
        )
        monkeypatch.setattr(doctor, "COMPONENTS", Listed([Broken(), whole]))
        seen = {each.name: each for each in doctor.check()}
        assert seen["broken"].found == "RuntimeError: out of order"
        assert seen["whole"].ok

    def test_it_makes_no_archives(self, ivy: java.Java, monkeypatch: pytest.MonkeyPatch) -> None:
        jars.resolve(ivy)
        before = sorted(cache.root().rglob("*"))
        monkeypatch.setattr(java, "find", lambda: ivy)
        seen = {each.name: each for each in doctor.check()}
        assert seen["archives"].found == "none for this Java and these jars"
        assert sorted(cache.root().rglob("*")) == before

    def test_the_page(self) -> None:
        met = doctor.Requirement(name="java", wanted="17 or 21", found="17", ok=True)
        lack = doctor.Requirement(name="disk", wanted="2 GiB", found="1 GiB", ok=False, cure="remove")
        extra = doctor.Requirement(name="docker", wanted="any", found="no", ok=False, cure="start", optional=True)
        assert doctor.lines([met, lack, extra]) == [
            "ok    java    17",
            "FAIL  disk    1 GiB (wanted: 2 GiB); cure: remove",
            "none  docker  no (wanted: any); if you want it: start",
        ]
        assert doctor.lines([lack], 40) == ["FAIL  disk  1 GiB (wanted: 2 GiB); cure:", "            remove"]
        assert doctor.lines([lack], 20) == ["FAIL  disk", "    1 GiB (wanted: 2", "    GiB); cure:", "    remove"]
        assert doctor.lines([]) == []
        assert doctor.fit([met, extra])
        assert not doctor.fit([met, lack])
        assert doctor.ready([met, lack, extra]) == "not ready: mend disk first"
        server = replace(extra, name="mariadb server")
        assert doctor.ready([met, extra, server]).endswith("; not there: docker, mariadb server")
        assert "mariadb" in doctor.ready([met]).split("; ")[0]
        assert "mariadb" not in doctor.ready([met, server]).split("; ")[0]


@pytest.mark.subprocess
@pytest.mark.parametrize("flags", ["", "--jobs=2 --keep-going"], ids=["one at a time", "side by side"])
@pytest.mark.parametrize("target", ["prove", "test"])
def test_make_says_what_is_missing_before_it_does_anything(tmp_path: Path, target: str, flags: str) -> None:
    root = Path(__file__).resolve().parent.parent
    for name in ("Makefile", "requirements.lock", "pyproject.toml", "harness"):
        (tmp_path / name).symlink_to(root / name)
    # Not the flags of the `make` that runs the tests: its job server is not ours.
    environ = {**os.environ, "MAKEFLAGS": flags, java.VARIABLE: str(fake_java(tmp_path / "java", "25.0.1"))}
    command = ["make", "-C", str(tmp_path), target]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=PROCESS_S)
    assert done.returncode != 0
    assert f"onceproof: needs Java 17 or 21; found java 25 at {tmp_path / 'java'}" in done.stderr
    assert not (tmp_path / ".venv").exists()
