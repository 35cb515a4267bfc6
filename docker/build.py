"""Builds the stand-in images, for places that reach no image registry: `python docker/build.py`, as root.

They take the same environment, commands and ports as the official images, whose names they do not take: what is run is
a setting (`harness/hosts/images.py`). Debian comes by debootstrap, Java and Postgres by apt, Kafka by Ivy, Spark from
the pyspark wheel. Needs an engine, debootstrap, and what `make set-up` brings.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import kafka as kafka_client
from docker.errors import BuildError, DockerException

import docker
from harness.component import COMPONENTS, AsContainer
from harness.components.kafka import process as kafka
from harness.components.opensearch import process as opensearch
from harness.errors import HarnessError
from harness.machine import jars, java
from harness.spark import standalone_containers as spark

HERE = Path(__file__).parent
SUITE, PYTHON = "bookworm", (3, 11)
COMPILED = ("pyarrow", "pandas", "numpy", "dateutil", "pytz", "tzdata")
"""What the pipelines import beside pure Python: Arrow, and pandas with what it imports."""
IMAGES = [kind.image for kind in COMPONENTS if isinstance(kind, AsContainer)] + [spark.IMAGE]
STAND_IN = {
    "base": "onceproof/base:bookworm",
    "java": "onceproof/java:17",
    **{image.part: image.stand_in for image in IMAGES},
}
"""In the order in which they are built."""


def base(client: docker.DockerClient) -> None:
    """Debian, as small as debootstrap makes it."""
    with tempfile.TemporaryDirectory(prefix="onceproof-base-") as folder:
        root = Path(folder) / "root"
        subprocess.run(["debootstrap", "--variant=minbase", SUITE, str(root)], check=True, stdout=subprocess.DEVNULL)
        archive = Path(folder) / "base.tar"
        subprocess.run(["tar", "-C", str(root), "-cf", str(archive), "."], check=True)
        said = client.api.import_image_from_file(str(archive), repository=STAND_IN["base"])
        if "errorDetail" in said:  # with a status that means success
            raise DockerException(said.strip())


def context(name: str) -> Iterator[tuple[Path, str]]:
    """The files that an image is built from, each with its place in the build context."""
    for path in sorted((HERE / name).iterdir()):
        yield path, path.name
    if name == "kafka":
        # A class path by wildcard has no order: of a jar that is there in two versions only the first one goes in.
        unique = {re.sub(r"-\d.*", "", jar.name): jar for jar in reversed(kafka.jars_of(jars.resolve(java.find())))}
        for jar in unique.values():
            yield jar, f"libs/{jar.name}"
    if name == "opensearch":
        yield opensearch.LAUNCHER, opensearch.LAUNCHER.name
        for jar in (*jars.fetched("opensearch", java.find()), *opensearch.compiler()):
            yield jar, f"libs/{jar.name}"
    if name == "spark":
        for package in _imported():
            yield package, f"site/{package.name}"
        yield from _spark(jars.spark_home())


def _imported() -> Iterator[Path]:
    """The packages here that pipelines import. A compiled one fits the Python of its own version alone."""
    yield Path(kafka_client.__file__).parent
    if sys.version_info[:2] != PYTHON:
        return
    for name in COMPILED:
        if (found := find_spec(name)) is not None and found.origin is not None:
            here = Path(found.origin)
            yield here.parent if found.submodule_search_locations else here
            # Where a wheel keeps the shared libraries that it brings.
            if (libraries := here.parent.with_name(f"{name}.libs")).is_dir():
                yield libraries


def _spark(home: Path) -> Iterator[tuple[Path, str]]:
    """The wheel's files where Spark's own distribution has them: the package `pyspark` lies under `python`."""
    for path in sorted(home.iterdir()):
        whole = path.name in ("bin", "sbin", "jars", "licenses", "data", "examples", "python")
        yield path, f"spark/{path.name}" if whole else f"spark/python/pyspark/{path.name}"


def build(client: docker.DockerClient, name: str) -> None:
    """One image, from a context streamed out of where its files lie."""
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            for path, place in context(name):
                archive.add(path, place, filter=lambda entry: None if "__pycache__" in entry.name else entry)
        file.seek(0)
        client.images.build(
            fileobj=file, custom_context=True, tag=STAND_IN[name], network_mode="host", rm=True, forcerm=True
        )


def main() -> int:
    """Build what is not there yet; 0, or 4 with one line. `--exports`: only print, for a shell, that ours are taken."""
    if "--exports" in sys.argv:
        print("\n".join(f"export {image.variable}={image.stand_in}" for image in IMAGES))
        return 0
    try:
        client = docker.from_env()
        have = {tag for image in client.images.list() for tag in image.tags}
        for name, tag in STAND_IN.items():
            if tag in have and "--again" not in sys.argv:
                continue
            print(f"building {tag}", flush=True)
            base(client) if name == "base" else build(client, name)
    except BuildError as error:
        said = "".join(line.get("stream", "") for line in error.build_log)[-2000:]
        print(f"{said}\ndocker/build.py: {error}", file=sys.stderr)
        return 4
    except (DockerException, HarnessError, OSError, subprocess.CalledProcessError) as error:
        print(f"docker/build.py: {error}", file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
