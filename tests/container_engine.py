"""A container engine with the images, or the tests that need one are not run: pytest names each with the reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from docker.errors import DockerException

import docker
from harness.stack import images
from harness.stack.containers import engine as engines


def found() -> docker.DockerClient:
    """The engine."""
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if host.startswith("unix://") and not Path(host.removeprefix("unix://")).exists():
        pytest.skip(f"not run: no container engine listens at {host}")
    try:
        client = docker.from_env()
        client.ping()
    except DockerException as error:
        pytest.skip(f"not run: no container engine answers: {error}")
    have = {tag for image in client.images.list() for tag in image.tags}
    if lacking := [images.image(part) for part in images.OFFICIAL if images.image(part) not in have]:
        pytest.skip(f"not run: the engine has no image {', '.join(lacking)}")
    return client


def left(client: docker.DockerClient) -> list[str]:
    """What carries our label now."""
    mine: dict[str, str | list[str] | bool] = {"label": engines.LABEL}
    names = [f"container {each.name}" for each in client.containers.list(all=True, filters=mine, ignore_removed=True)]
    names += [f"network {each.name}" for each in client.networks.list(filters=mine)]
    return names + [f"volume {each.name}" for each in client.volumes.list(filters=mine)]
