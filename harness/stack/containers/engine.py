"""The container engine: found as testcontainers and Docker find it, its errors in our words, everything labelled.

`python -m harness.stack.containers.engine SESSION` removes every container, network and volume of a session: the
session's reaper runs it when the harness is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound

import docker
from harness.errors import StackError

LABEL = "onceproof.session"
PASSED_ON = ("PATH", "HOME", "DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_CONTEXT", "DOCKER_CONFIG")
"""What says which engine, for the process that cleans up."""
CLEAN_TRIES = 3


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One container to start. `ports`: its own ports and the loopback ones they are published at (0: any).
    `folders`: seen inside under the same path, true for those that it may write. `files`: where each is seen inside.
    `tmpfs`: folders inside that are memory, with their options."""

    name: str
    image: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[int, int] = field(default_factory=dict)
    folders: Mapping[Path, bool] = field(default_factory=dict)
    files: Mapping[Path, str] = field(default_factory=dict)
    tmpfs: Mapping[str, str] = field(default_factory=dict)
    entrypoint: Sequence[str] | None = None
    user: str | None = None
    alias: str = ""


@contextlib.contextmanager
def said(what: str) -> Iterator[None]:
    """Raise StackError for what the engine refuses while `what` is done."""
    try:
        yield
    except ImageNotFound as error:
        raise StackError(f"{what}: {error.explanation or error}") from error
    except APIError as error:
        raise StackError(f"{what}: the engine refused: {error.explanation or error}") from error
    except (DockerException, requests.RequestException) as error:
        raise StackError(f"{what}: the engine does not answer: {error}") from error


class Engine:
    """One session's view of the engine. Raises StackError when none answers."""

    def __init__(self, session: str) -> None:
        # Slow to import, and it reads its settings from the environment then.
        from testcontainers.core.docker_client import DockerClient

        cure = "start Docker, or say where it is with DOCKER_HOST; without it: --stack processes"
        try:
            self._client = DockerClient()
            self.version: str = self.client.version()["Version"]
        except (DockerException, requests.RequestException) as error:
            raise StackError(f"asked for the stack containers; no engine answers ({error}); {cure}") from error
        self.session = session
        self._network: Any = None

    @property
    def client(self) -> docker.DockerClient:
        """Docker's own client."""
        return self._client.client

    @property
    def host(self) -> str:
        """Where published ports are reached."""
        return "127.0.0.1" if self._client.host() == "localhost" else self._client.host()

    def have(self, image: str, setting: str) -> None:
        """Pull an image that is not here. Raises StackError with the ways out."""
        try:
            self.client.images.get(image)
            return
        except ImageNotFound:
            pass
        try:
            self.client.images.pull(image)
        except (DockerException, requests.RequestException) as error:
            why = getattr(error, "explanation", None) or error
            cure = f"docker pull {image}, name another one with {setting}, or build a stand-in: python docker/build.py"
            raise StackError(f"the image {image} is not here and cannot be pulled ({why}); {cure}") from error

    def connect(self) -> None:
        """Make the session's own network. Raises StackError."""
        from testcontainers.core.network import Network

        with said("asked for a network"):
            self._network = Network(docker_network_kw={"labels": {LABEL: self.session}}).create()

    def start(self, wanted: Wanted) -> Any:
        """Start a container in the session's network; returns Docker's object for it. Raises StackError."""
        from testcontainers.core.container import DockerContainer

        box = DockerContainer(wanted.image).with_command(list(wanted.command)).with_envs(**wanted.environment)
        box.with_name(f"{self.session}-{wanted.name}").with_network(self._network)
        box.with_network_aliases(wanted.alias or wanted.name)
        for port, published in wanted.ports.items():
            box.ports[f"{port}/tcp"] = ("127.0.0.1", published or None)  # type: ignore[assignment]
        for folder, writable in wanted.folders.items():
            box.with_volume_mapping(folder, str(folder), "rw" if writable else "ro")
        for file, place in wanted.files.items():
            box.with_volume_mapping(file, place, "ro")
        for place, size in wanted.tmpfs.items():
            box.with_tmpfs_mount(place, size)
        more: dict[str, Any] = {"labels": {LABEL: self.session}, "init": True}
        if wanted.entrypoint is not None:
            more["entrypoint"] = list(wanted.entrypoint)
        if wanted.user is not None:
            more["user"] = wanted.user
        with said(f"asked for the container {wanted.name} of {wanted.image}"):
            return box.with_kwargs(**more).start().get_wrapped_container()

    def close(self) -> None:
        """Remove everything of the session."""
        with contextlib.suppress(DockerException, requests.RequestException):
            clean(self.client, self.session)
        self.client.close()


def clean(client: docker.DockerClient, session: str) -> None:
    """Remove every container, network and volume of a session. Raises DockerException if something is left."""
    mine: dict[str, str | list[str] | bool] = {"label": f"{LABEL}={session}"}
    for number in range(CLEAN_TRIES):
        try:
            for container in client.containers.list(all=True, filters=mine, ignore_removed=True):
                with contextlib.suppress(NotFound):
                    container.remove(force=True, v=True)
            for network in client.networks.list(filters=mine):
                with contextlib.suppress(NotFound):
                    network.remove()
            for volume in client.volumes.list(filters=mine):
                with contextlib.suppress(NotFound):
                    volume.remove(force=True)
            return
        except APIError:  # one that is being removed already
            if number == CLEAN_TRIES - 1:
                raise


def last_words(session: str) -> str:
    """The line for the session's reaper: which command cleans up, with which environment."""
    argv = [sys.executable, "-m", "harness.stack.containers.engine", session]
    found = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return json.dumps({"argv": argv, "env": {**found, "PYTHONPATH": str(Path(__file__).parents[3])}})


if __name__ == "__main__":
    clean(docker.from_env(), sys.argv[1])
