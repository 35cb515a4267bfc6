"""The container engine: found as testcontainers and Docker find it, its errors in our words, everything labelled.

`python -m harness.hosts.engine SESSION` removes every container, network and volume of a session: the
session's reaper runs it when the harness is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
from docker.errors import APIError, DockerException, ImageNotFound
from docker.types import EndpointConfig, IPAMConfig, IPAMPool

import docker
from harness.errors import StackError
from harness.hosts.images import Image
from harness.hosts.ports import Leases
from harness.wait import Deadline

LABEL, RUN_LABEL = "onceproof.session", "onceproof.run"
PASSED_ON = ("PATH", "HOME", "DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_CONTEXT", "DOCKER_CONFIG")
"""What says which engine, for the process that cleans up."""
CLEAN_S, CALM_S = 25.0, 0.2
ZOMBIE_CALM_S = 3.0
"""How long nothing of a dead harness may come to light: what it had asked for may still be in the making."""
STARTS_WITHIN_S = 120.0
TRIES = 5
AWAY, AWAY_NOW = "/tmp/onceproof-away", "/tmp/onceproof-is-away"
"""Inside a container that stays: there while its server has to be away; there once it is."""
# The first process of such a container. A server that ends by itself takes the container with it, as usual.
STAYS = f"""while :; do
  "$@"
  status=$?
  [ -e {AWAY} ] || exit $status
  : > {AWAY_NOW}
  while [ -e {AWAY} ]; do sleep 0.1; done
done"""
ELSEWHERE = "the engine has to be on this machine, where faults find its processes and pipelines their folders"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One container to start. `ports`: its own ports and the loopback ones they are published at (0: any).
    `folders`: seen inside under the same path, true for those that it may write. `files`: where each is seen inside.
    `tmpfs`: folders inside that are memory, with their options. `folder`: where it begins. `run`: whose it is.
    `stays`: its server can be killed and started again in it (`AWAY`)."""

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
    folder: Path | None = None
    run: str = ""
    stays: bool = False


@contextlib.contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Raise StackError for what the engine refuses while `what` is done."""
    try:
        yield
    except ImageNotFound as error:
        raise StackError(f"{what}: {error.explanation or error}") from error
    except APIError as error:
        raise StackError(f"{what}: the engine refused: {error.explanation or error}") from error
    except (DockerException, OSError) as error:
        raise StackError(f"{what}: the engine does not answer: {error}") from error


class Engine:
    """One session's view of the engine. Raises StackError when none answers."""

    def __init__(self, session: str) -> None:
        # Slow to import, and it reads its settings from the environment then.
        from testcontainers.core.docker_client import DockerClient, get_docker_host

        cure = "start Docker, or say where it is with DOCKER_HOST; without it: --stack processes"
        host = get_docker_host() or "unix:"
        if not host.startswith(("unix:", "http+unix:")):
            raise StackError(f"asked for the stack containers; {ELSEWHERE}, not at {host}; {cure}")
        try:
            self._client = DockerClient()
            self.version: str = self.client.version()["Version"]
        except (DockerException, requests.RequestException) as error:
            raise StackError(f"asked for the stack containers; no engine answers ({error}); {cure}") from error
        self.session = session
        self._network: Any = None
        self._gate = threading.Condition()
        self._starting, self._closing = 0, False
        self._leases = Leases(())

    @property
    def client(self) -> docker.DockerClient:
        """Docker's own client."""
        return self._client.client

    @property
    def host(self) -> str:
        """Where published ports are reached."""
        return "127.0.0.1" if self._client.host() == "localhost" else self._client.host()

    def _full(self, image: str) -> str:
        """Return its name with the prefix that testcontainers puts before each."""
        from testcontainers.core.config import testcontainers_config

        return str(testcontainers_config.hub_image_name_prefix) + image

    def identity(self, image: str) -> str:
        """Return the id of an image that is here: another one for every other content. Raises StackError."""
        with engine_errors(f"asked for the image {image}"):
            return str(self.client.images.get(self._full(image)).id)

    def _entrypoint(self, image: str) -> Sequence[str]:
        """Return what an image begins with, whatever the command. Raises StackError."""
        with engine_errors(f"asked for the image {image}"):
            return [*(self.client.images.get(self._full(image)).attrs["Config"]["Entrypoint"] or ())]

    def have(self, wanted: Image) -> None:
        """Pull an image that is not here. Raises StackError with the ways out."""
        image = self._full(wanted.name)
        try:
            with engine_errors(f"asked for the image {image}"):
                self.client.images.get(image)
            return
        except StackError as error:
            if not isinstance(error.__cause__, ImageNotFound):
                raise
        try:
            self.client.images.pull(image)
        except (DockerException, requests.RequestException) as error:
            why = getattr(error, "explanation", None) or error
            ways = f"docker pull {image}, name another one with {wanted.variable}"
            cure = f"{ways}, or build a stand-in: python docker/build.py"
            raise StackError(f"the image {image} is not here and cannot be pulled ({why}); {cure}") from error

    def connect(self) -> None:
        """Make the session's own network. Raises StackError."""
        from testcontainers.core.config import testcontainers_config
        from testcontainers.core.container import Reaper
        from testcontainers.core.network import Network

        if not testcontainers_config.ryuk_disabled:
            # Before several threads ask for it at once, each of which would make one.
            with engine_errors(
                "asked for testcontainers' own reaper (TESTCONTAINERS_RYUK_DISABLED=true does without: ours is on)"
            ):
                try:
                    Reaper.get_instance()
                except RuntimeError as error:
                    raise StackError(f"asked for testcontainers' own reaper: {error}") from error
        for tried in range(1, TRIES + 1):
            subnets = self._range()
            pools = IPAMConfig(pool_configs=[IPAMPool(subnet=each) for each in subnets])
            network = Network(docker_network_kw={"labels": {LABEL: self.session}, "ipam": pools})
            try:
                with engine_errors("asked for a network"):
                    self._network = network.create()
                self._leases = Leases(subnets)
                return
            except StackError as error:
                # Another start took the range in between.
                if tried == TRIES or "overlaps" not in str(error):
                    raise

    def _range(self) -> list[str]:
        """Ranges of addresses that are free: only in one that was named may a container ask for an address. The engine
        picks them, for a network that goes at once. Raises StackError."""
        with engine_errors("asked for a free range of addresses"):
            probe = self.client.networks.create(f"{self.session}-probe", labels={LABEL: self.session})
            try:
                probe.reload()
                return [str(each["Subnet"]) for each in probe.attrs["IPAM"]["Config"]]
            finally:
                probe.remove()

    def start(self, wanted: Wanted) -> Any:
        """Start a container in the session's network; returns Docker's object for it. Raises StackError."""
        from testcontainers.core.container import DockerContainer

        container = DockerContainer(wanted.image).with_command(list(wanted.command)).with_envs(**wanted.environment)
        container.with_name(f"{self.session}-{wanted.name}").with_network(self._network)
        for port, published in wanted.ports.items():
            container.ports[f"{port}/tcp"] = ("127.0.0.1", published or None)  # type: ignore[assignment]
        for folder, writable in wanted.folders.items():
            container.with_volume_mapping(folder, str(folder), "rw" if writable else "ro")
        for file, place in wanted.files.items():
            container.with_volume_mapping(file, place, "ro")
        for place, size in wanted.tmpfs.items():
            container.with_tmpfs_mount(place, size)
        labels = {LABEL: self.session, **({RUN_LABEL: wanted.run} if wanted.run else {})}
        # A kill of all processes inside spares only the first one, so that has to be the one that stays.
        more: dict[str, Any] = {"labels": labels, "init": not wanted.stays}
        place_here = EndpointConfig(
            self.client.api.api_version, aliases=[wanted.name], ipv4_address=self._leases.take(wanted.run)
        )
        more["networking_config"] = {self._network.name: place_here}
        if wanted.folder is not None:
            more["working_dir"] = str(wanted.folder)
        if wanted.entrypoint is not None:
            more["entrypoint"] = list(wanted.entrypoint)
        elif wanted.stays:
            more["entrypoint"] = ["/bin/sh", "-c", STAYS, wanted.name, *self._entrypoint(wanted.image)]
        if wanted.user is not None:
            more["user"] = wanted.user
        with self._alive(), engine_errors(f"asked for the container {wanted.name} of {wanted.image}"):
            try:
                made = container.with_kwargs(**more).start().get_wrapped_container()
                return self.client.containers.get(str(made.id))
            except BaseException:
                # It may run all the same, and that would not be seen.
                with contextlib.suppress(Exception):
                    self.client.containers.get(f"{self.session}-{wanted.name}").remove(force=True, v=True)
                raise
            finally:
                # Each opens another client, and closes none.
                container.get_docker_client().client.close()

    @contextlib.contextmanager
    def _alive(self) -> Iterator[None]:
        """Nothing is started once the end has begun, and the end waits for what is being started."""
        with self._gate:
            if self._closing:
                raise StackError("asked for a container of a stack that is going down")
            self._starting += 1
        try:
            yield
        finally:
            with self._gate:
                self._starting -= 1
                self._gate.notify_all()

    def cut(self, container: Any) -> str:
        """Take a container off the session's network; returns the address that it had there. Raises StackError."""
        with engine_errors(f"asked to take {container.name} off its network"):
            container.reload()
            here = container.attrs["NetworkSettings"]["Networks"][self._network.name]["IPAddress"]
            self.client.networks.get(self._network.name).disconnect(container)
        return str(here)

    def join(self, container: Any, name: str, address: str) -> None:
        """Put it back, as `name` and at its old address. Raises StackError."""
        with engine_errors(f"asked to put {container.name} back on its network"):
            self.client.networks.get(self._network.name).connect(container, aliases=[name], ipv4_address=address)

    def forget(self, run: str) -> None:
        """Remove the containers of one run."""
        with engine_errors(f"asked to remove the containers of {run}"):
            clean(self.client, self.session, run=run)
        self._leases.free(run)

    def close(self) -> None:
        """Remove everything of the session. Raises StackError if something is left."""
        with self._gate:
            self._closing = True
            self._gate.wait_for(lambda: not self._starting, timeout=STARTS_WITHIN_S)
        try:
            with engine_errors("asked to remove what this session made"):
                clean(self.client, self.session)
        finally:
            self.client.close()


def clean(client: docker.DockerClient, session: str, *, run: str | None = None, calm_s: float = 2 * CALM_S) -> None:
    """Remove every container, network and volume of a session; of one run, its containers. Asks until nothing was found
    for `calm_s` seconds, since what was being made while it was asked comes to light later. Raises StackError after
    `CLEAN_S`."""
    labels = [f"{LABEL}={session}", *([f"{RUN_LABEL}={run}"] if run else [])]
    limit, pause, calm = Deadline(CLEAN_S), threading.Event(), Deadline(calm_s)
    while (left := _remove_all(client, labels, every=run is None)) or not (run or calm.over()):
        if left:
            calm = Deadline(calm_s)
        if left and limit.over():
            raise StackError(f"could not remove {', '.join(left)} within {CLEAN_S:g} s")
        pause.wait(CALM_S)


def _remove_all(client: docker.DockerClient, labels: list[str], *, every: bool) -> list[str]:
    """Ask for the removal of what carries all the labels; the names of what was there."""
    found: dict[str, str | list[str] | bool] = {"label": labels}
    containers = client.containers.list(all=True, filters=found, ignore_removed=True)
    networks = client.networks.list(filters=found) if every else []
    volumes = client.volumes.list(filters=found) if every else []
    for container in containers:
        # One that is being removed already is refused, and gone the next time.
        with contextlib.suppress(APIError):
            container.remove(force=True, v=True)
    for network in networks:
        with contextlib.suppress(APIError):
            network.remove()
    for volume in volumes:
        with contextlib.suppress(APIError):
            volume.remove(force=True)
    return [str(each.short_id) for each in (*containers, *networks, *volumes)]


def last_log_lines(session: str) -> str:
    """Return the line for the session's reaper: which command cleans up, with which environment."""
    argv = [sys.executable, "-m", "harness.hosts.engine", session]
    found = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return json.dumps({"argv": argv, "env": {**found, "PYTHONPATH": str(Path(__file__).parents[2])}})


def main(session: str) -> int:
    """Clean up after a session whose harness is gone; 0, or 1 with one line."""
    place = Path(os.environ.get("DOCKER_HOST", "").removeprefix("unix://"))
    if place.is_absolute() and not place.parent.is_dir():
        return 0  # the engine's own folder is gone with everything in it
    try:
        with engine_errors(f"asked to remove what {session} left"):
            clean(docker.from_env(), session, calm_s=ZOMBIE_CALM_S)
    except StackError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
