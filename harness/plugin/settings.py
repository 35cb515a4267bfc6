"""The plugin's options: `--harness-x`, else the environment variable `HARNESS_X`, else the ini key `harness_x`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import HarnessError
from harness.stacks import DEFAULT
from harness.stacks.addresses import ADDRESS_OPTIONS, AT, Where, where

if TYPE_CHECKING:
    from harness.fields.shards import Shard

OPTIONS = {
    "stack": ("NAME", "the stack that scenarios run on (default: processes)"),
    "spark": ("VERSION", "the Spark version, such as 3.5, of scenarios that name none (default: the installed one)"),
    "own_stack": ("yes|no", "yes: start a stack even where `onceproof up` left one (default: no)"),
    "seed": ("N", "seed of every scenario (default: the one in its file)"),
    "shard": ("I/N", "only the I-th of N parts of the scenarios, by their sorted paths; other tests run in each"),
    # Kept by default, unlike pytest's tmp_path: a held verdict is a claim, and its folder is the evidence.
    "keep": ("WHICH", "run folders to keep: all, failed or none (default: all)"),
    "reports": ("FOLDER", "where run folders and the summary go (default: reports)"),
    **ADDRESS_OPTIONS,
}
KEEP = ("all", "failed", "none")


@dataclass(frozen=True)
class Settings:
    """The options, read once. `reports` and `folders` are absolute; `places` say where a cluster is."""

    stack: str
    places: Mapping[str, Any]
    seed: int | None
    shard: Shard | None
    spark: str
    own_stack: bool
    keep: str
    reports: Path
    folders: tuple[Path, ...]


def cluster(settings: Settings) -> Where | None:
    """Return the cluster that was asked for, None on another stack. Asked for with the first scenario: a session
    without one has nothing to do with it. Raises UsageError."""
    return where(settings.stack, settings.places, prefix="--harness-")


def add(parser: pytest.Parser) -> None:
    """Make the options known to pytest."""
    group = parser.getgroup("onceproof", "Onceproof (scenarios of failure)")
    for name, (metavar, text) in OPTIONS.items():
        option = f"--harness-{name.replace('_', '-')}"
        more: dict[str, Any] = {"action": "append"} if name == AT else {}
        group.addoption(option, dest=f"harness_{name}", metavar=metavar, default=None, help=text, **more)
        if name == AT:
            parser.addini(f"harness_{name}", text, type="linelist", default=[])
        else:
            parser.addini(f"harness_{name}", text, default="")
    parser.addini("harness_scenarios", "folders in which every YAML file is a scenario", type="paths", default=[])


def read(config: pytest.Config) -> Settings:
    """Return the options of this session. Raises pytest.UsageError."""
    values = {name: _value(config, name) for name in OPTIONS if name != AT}
    keep, seed = values["keep"] or "all", values["seed"]
    if keep not in KEEP:
        raise pytest.UsageError(f"--harness-keep must be one of {', '.join(KEEP)}, not {keep!r}")
    if seed and not re.fullmatch(r"-?[0-9]{1,18}", seed):
        raise pytest.UsageError(f"--harness-seed must be a whole number, not {seed!r}")
    return Settings(
        stack=values["stack"] or DEFAULT,
        places={**{name: values[name] for name in ADDRESS_OPTIONS if name != AT}, AT: _values(config, AT)},
        seed=int(seed) if seed else None,
        shard=_shard(values["shard"]),
        spark=_spark_version(values["spark"]),
        own_stack=_yes(values, "own_stack"),
        keep=keep,
        reports=config.rootpath / (values["reports"] or "reports"),
        folders=tuple(config.getini("harness_scenarios")),
    )


def _shard(text: str) -> Shard | None:
    if not text:
        return None
    from harness.fields.shards import Shard

    try:
        return Shard.parse(text, "--harness-shard")
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from None


def _spark_version(text: str) -> str:
    if not text:
        return ""
    from harness.machine import spark_versions

    try:
        return spark_versions.chosen(text)
    except HarnessError as error:
        raise pytest.UsageError(f"--harness-spark: {error}") from None


def _yes(values: Mapping[str, str], name: str) -> bool:
    given = values[name] or "no"
    if given not in ("yes", "no"):
        raise pytest.UsageError(f"--harness-{name.replace('_', '-')} must be yes or no, not {given!r}")
    return given == "yes"


def _values(config: pytest.Config, name: str) -> Sequence[str]:
    """Return an option that may be given several times; several lines of the environment variable."""
    lines = os.environ.get(f"HARNESS_{name.upper()}", "").splitlines()
    return config.getoption(f"harness_{name}") or lines or config.getini(f"harness_{name}")


def _value(config: pytest.Config, name: str) -> str:
    given = config.getoption(f"harness_{name}")
    return str(given or os.environ.get(f"HARNESS_{name.upper()}") or config.getini(f"harness_{name}"))
