"""A container engine with the images, or the tests that need one are not run: pytest names each with the reason."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest
from docker.errors import DockerException

import docker
from harness.component import COMPONENTS, AsContainer
from harness.hosts import engine as engines
from harness.spark import standalone_containers as spark

NEEDED = "ONCEPROOF_NEED_CONTAINERS"
"""Set where there has to be an engine: then what is lacking fails the tests."""

BOTH = "partition_ledger_executor_killed mariadb_added_before_offset_commit"
CHOICE = os.environ.get("ONCEPROOF_CONTAINERS", BOTH).split()
"""The scenarios to run on both stacks, by the name of their file; `_` takes all that can be."""


def needed() -> bool:
    """There has to be an engine."""
    return bool(os.environ.get(NEEDED))


def chosen(path: Path) -> bool:
    """It is a scenario that is run on both stacks."""
    return any(path.stem == word or word == "_" for word in CHOICE)


def lacking(what: str) -> NoReturn:
    """The test is not run, by name; where an engine has to be there, it fails."""
    if needed():
        pytest.fail(f"{NEEDED} is set, and there is no {what}")
    pytest.skip(f"not run: no {what} here")


def found() -> docker.DockerClient:
    """The engine."""
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if host.startswith("unix://") and not Path(host.removeprefix("unix://")).exists():
        lacking(f"container engine at {host}")
    try:
        client = docker.from_env()
        client.ping()
    except DockerException as error:
        lacking(f"container engine that answers ({error})")
    have = {tag for image in client.images.list() for tag in image.tags}
    kinds = [kind.image for kind in COMPONENTS if isinstance(kind, AsContainer)]
    if missing := [image.name for image in (*kinds, spark.IMAGE) if image.name not in have]:
        lacking(f"image {', '.join(missing)}")
    return client


def left(client: docker.DockerClient) -> list[str]:
    """What carries our label now, and every volume, in order: an engine lists them as it likes."""
    mine: dict[str, str | list[str] | bool] = {"label": engines.LABEL}
    names = [f"container {each.name}" for each in client.containers.list(all=True, filters=mine, ignore_removed=True)]
    names += [f"network {each.name}" for each in client.networks.list(filters=mine)]
    # Those that an image asks for carry no label.
    return sorted(names + [f"volume {each.name}" for each in client.volumes.list()])
