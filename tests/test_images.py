"""The images of the stack `containers` and of docker-compose.yml are the same ones, pinned; each is a setting."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from harness.component import COMPONENTS, AsContainer
from harness.components.kafka.container import variable
from harness.components.kafka.process import VERSION
from harness.hosts.images import Image
from harness.spark import standalone_containers as spark

ROOT = Path(__file__).parent.parent
PARTS = {
    "kafka": "kafka",
    "postgres": "postgres",
    "spark-master": "spark",
    "worker-1": "spark",
    "worker-2": "spark",
}


IMAGES = [*(kind.image for kind in COMPONENTS if isinstance(kind, AsContainer)), spark.IMAGE]
BY_PART = {image.part: image for image in IMAGES}


@pytest.fixture(scope="module")
def compose() -> Any:
    return YAML(typ="safe").load(ROOT / "docker-compose.yml")


def test_compose_takes_the_images_of_the_stack(compose: Any) -> None:
    wanted = {service: f"${{{BY_PART[part].variable}:-{BY_PART[part].official}}}" for service, part in PARTS.items()}
    assert {name: service["image"] for name, service in compose["services"].items()} == wanted


def test_compose_listens_on_loopback_only_and_waits_for_an_answer(compose: Any) -> None:
    for name, service in compose["services"].items():
        assert service["network_mode"] == "host", name
        assert service["healthcheck"]["test"], name
    assert "listen_addresses=127.0.0.1" in compose["services"]["postgres"]["command"]
    listeners = compose["services"]["kafka"]["environment"]["KAFKA_LISTENERS"]
    assert all(address.split("//")[1].startswith("127.0.0.1:") for address in listeners.split(","))
    for name in ("spark-master", "worker-1", "worker-2"):
        command = compose["services"][name]["command"]
        assert command[command.index("--host") + 1] == "127.0.0.1", name


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.part)
def test_an_image_is_pinned_and_a_setting(image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(image.variable, raising=False)
    assert image.name == image.official
    tag = image.official.rpartition(":")[2]
    assert tag[0].isdigit() and "latest" not in tag
    monkeypatch.setenv(f"ONCEPROOF_IMAGE_{image.part.upper()}", "mine:1")
    assert image.name == "mine:1"


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("node.id", "KAFKA_NODE_ID"),
        ("min.insync.replicas", "KAFKA_MIN_INSYNC_REPLICAS"),
        ("a_b", "KAFKA_A__B"),
        ("a-b.c", "KAFKA_A___B_C"),
    ],
)
def test_a_setting_of_kafka_becomes_the_variable_that_its_image_reads(setting: str, name: str) -> None:
    assert variable(setting) == name


def test_the_images_hold_what_the_jars_are_for() -> None:
    version = importlib.metadata.version("pyspark")
    for name in ("official", "stand_in"):
        assert getattr(BY_PART["kafka"], name).rpartition(":")[2] == VERSION
        assert getattr(BY_PART["spark"], name).rpartition(":")[2].partition("-")[0] == version
