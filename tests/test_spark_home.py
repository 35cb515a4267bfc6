"""Spark's home is one copy in the cache for every environment with the same pyspark."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from harness.errors import StackError
from harness.machine import cache
from harness.machine import spark_home as home


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed pyspark of three files, and an empty cache."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return installed(tmp_path / "one", monkeypatch)


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("jars/spark.jar", "bin/spark-submit", "python/lib/pyspark.zip", "sql/session.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name, encoding="utf-8")
    (folder / "bin/spark-submit").chmod(0o755)
    monkeypatch.setattr(home, "wheel", lambda: folder)
    return folder


def test_the_copy_has_jars_and_scripts_and_none_of_the_package(wheel: Path) -> None:
    found = home.spark_home()
    assert found.is_relative_to(cache.root())
    assert sorted(str(path.relative_to(found)) for path in found.rglob("*") if path.is_file()) == [
        "bin/spark-submit", "bin/spark-submit.spark", "jars/spark.jar", "python/lib/pyspark.zip", "state",
    ]  # fmt: skip
    for name in ("spark-submit", "spark-submit.spark"):
        assert os.access(found / "bin" / name, os.X_OK)
    assert (found / home.SPARKS_OWN).read_text() == "bin/spark-submit"


def test_sparks_compiler_is_taken_out_of_its_signature_and_nothing_else_is(wheel: Path) -> None:
    for name in ("janino-3.1.jar", "bcprov.jar"):
        with zipfile.ZipFile(wheel / "jars" / name, "w") as jar:
            for entry in ("META-INF/MANIFEST.MF", "META-INF/A.SF", "META-INF/a.dsa", "org/A.class", "org/A.SF"):
                jar.writestr(entry, entry)
    found = home.spark_home() / "jars"
    with zipfile.ZipFile(found / "janino-3.1.jar") as jar:
        assert jar.namelist() == ["META-INF/MANIFEST.MF", "org/A.class", "org/A.SF"]
        assert jar.read("org/A.class") == b"org/A.class"
    assert (found / "bcprov.jar").read_bytes() == (wheel / "jars/bcprov.jar").read_bytes()
    assert sorted(path.name for path in found.iterdir()) == ["bcprov.jar", "janino-3.1.jar", "spark.jar"]


def test_a_jar_that_is_torn_is_one_error(wheel: Path) -> None:
    (wheel / "jars/janino-3.1.jar").write_text("no jar")
    with pytest.raises(StackError, match="File is not a zip file"):
        home.spark_home()


def test_two_environments_with_the_same_files_share_it(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = home.spark_home()
    made = (first / "jars/spark.jar").stat().st_mtime_ns
    installed(tmp_path / "two", monkeypatch)
    assert home.spark_home() == first
    assert (first / "jars/spark.jar").stat().st_mtime_ns == made


@pytest.mark.parametrize("change", ["another", "more"])
def test_a_pyspark_that_somebody_changed_has_another_one(wheel: Path, change: str) -> None:
    before = home.spark_home()
    if change == "more":
        (wheel / "jars/own.jar").write_text("own", encoding="utf-8")
    else:
        # The same size: only the bytes and the time tell.
        (wheel / "jars/spark.jar").write_text("jars/SPARK.jar", encoding="utf-8")
        os.utime(wheel / "jars/spark.jar", ns=(1, 1))
    after = home.spark_home()
    assert after != before
    assert (after / "jars/spark.jar").read_text() == (wheel / "jars/spark.jar").read_text()


@pytest.mark.parametrize("damage", ["gone", "altered", "more"])
def test_a_damaged_copy_is_left_to_who_uses_it_and_another_one_made(wheel: Path, damage: str) -> None:
    first = home.spark_home()
    jar = first / "jars/spark.jar"
    if damage == "gone":
        jar.unlink()
    elif damage == "altered":
        jar.write_text("else", encoding="utf-8")
    else:
        jar.with_name("stray.jar").write_text("stray", encoding="utf-8")
    again = home.spark_home()
    assert again != first
    assert first.exists()
    assert home.spark_home() == again
    assert [path.name for path in again.glob("jars/*")] == ["spark.jar"]
    assert (again / "jars/spark.jar").read_text() == "jars/spark.jar"


def test_a_note_that_is_damaged_is_no_reason_to_fail(wheel: Path) -> None:
    first = home.spark_home()
    (note,) = (cache.root() / "spark").glob("*.json")
    note.write_text("{", encoding="utf-8")
    assert home.spark_home() == first
