"""The wheel and the sdist: the same bytes from the same source, the files that the package needs and no others."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness import __version__
from tests.limits import PROCESS_S

HOUSE = Path(__file__).parents[1]
BESIDE = ("pyproject.toml", "README.md", "LICENSE")
BUILD = "import sys; from flit_core import buildapi as b; b.build_wheel(sys.argv[1]); b.build_sdist(sys.argv[1])"
WHEEL = f"onceproof-{__version__}-py3-none-any.whl"
SDIST = f"onceproof-{__version__}.tar.gz"
INFO = f"onceproof-{__version__}.dist-info/"


def built(source: Path, out: Path) -> dict[str, bytes]:
    """Build wheel and sdist of `source` without a network; return the bytes of each by its name."""
    out.mkdir()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    command = [sys.executable, "-c", BUILD, str(out)]
    subprocess.run(command, cwd=source, env=environment, check=True, timeout=PROCESS_S)
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    """Wheel and sdist of the checkout."""
    return built(HOUSE, tmp_path_factory.mktemp("packages") / "out")


def files(wheel: bytes) -> list[str]:
    """Return the files of a wheel beside its metadata."""
    return sorted(name for name in zipfile.ZipFile(io.BytesIO(wheel)).namelist() if not name.startswith(INFO))


@pytest.mark.subprocess
def test_another_clone_gives_the_same_bytes(packages: Mapping[str, bytes], tmp_path: Path) -> None:
    """Of another path, other times and modes, and without caches."""
    clone = tmp_path / "deeper" / "clone"
    caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(HOUSE / "harness", clone / "harness", ignore=caches, copy_function=shutil.copyfile)
    for name in BESIDE:
        shutil.copyfile(HOUSE / name, clone / name)
    for path in clone.rglob("*"):
        if path.is_file():
            path.chmod(0o600)
    assert built(clone, tmp_path / "out") == packages
    assert packages.keys() == {WHEEL, SDIST}


@pytest.mark.subprocess
def test_the_sdist_is_what_its_wheel_is_built_from(packages: Mapping[str, bytes], tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(packages[SDIST])) as sdist:
        sdist.extractall(tmp_path, filter="data")
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert names == {*files(packages[WHEEL]), *BESIDE, "PKG-INFO"}
    assert built(tmp_path / SDIST.removesuffix(".tar.gz"), tmp_path / "out")[WHEEL] == packages[WHEEL]


@pytest.mark.subprocess
def test_the_wheel_has_the_package_and_nothing_else(packages: Mapping[str, bytes]) -> None:
    found = files(packages[WHEEL])
    here = (path for path in (HOUSE / "harness").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert found == sorted(str(path.relative_to(HOUSE)) for path in here)
    code = "\n".join((HOUSE / name).read_text(encoding="utf-8") for name in found if name.endswith((".py", ".j2")))
    data = {Path(name).name for name in found if not name.endswith(".py")} - {"py.typed"}
    assert len(data) > 10
    assert [name for name in sorted(data) if not read(name, code)] == []


def read(name: str, code: str) -> bool:
    """Return whether the code has the name of a file, or its stem; a version in it may be a placeholder there."""
    pattern = r"\{\w+\}".join(re.escape(part) for part in re.split(r"\d\.\d", name))
    return f'"{Path(name).stem}"' in code or re.search(pattern, code) is not None


def test_the_version_is_in_one_place() -> None:
    version = re.compile(rf"(?<![\d.]){re.escape(__version__)}(?![\d.])")
    places = [HOUSE / "README.md", HOUSE / "pyproject.toml", *HOUSE.glob("*.y*ml"), *HOUSE.glob("harness/**/*.py")]
    places += [*HOUSE.glob("docs/**/*.md"), *HOUSE.glob("docs/**/*.yml"), *HOUSE.glob(".github/**/*.yml")]
    found = [str(path.relative_to(HOUSE)) for path in places if version.search(path.read_text(encoding="utf-8"))]
    assert found == ["harness/__init__.py"]
    assert f"\n## [{__version__}]" in (HOUSE / "CHANGELOG.md").read_text(encoding="utf-8")
