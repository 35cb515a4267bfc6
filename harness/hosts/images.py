"""The images of the stack `containers`, in one place: the official ones, pinned by tag; each is a setting.

`ONCEPROOF_IMAGE_KAFKA`, `ONCEPROOF_IMAGE_POSTGRES` and `ONCEPROOF_IMAGE_SPARK` name others: a mirror's, your own Spark
with your pipeline's packages, or the stand-ins that `docker/build.py` makes where no image registry is reached.
`docker-compose.yml` names the same ones; a test holds it to that.
"""

from __future__ import annotations

import os

OFFICIAL = {
    "kafka": "apache/kafka:4.2.0",
    "postgres": "postgres:18.0",
    "spark": "apache/spark:4.0.0-python3",
}
STAND_IN = {
    "base": "onceproof/base:bookworm",
    "java": "onceproof/java:17",
    "kafka": "onceproof/kafka:4.2.0",
    "postgres": "onceproof/postgres:15",
    "spark": "onceproof/spark:4.0.0",
}
"""In the order in which they are built."""
VARIABLE = "ONCEPROOF_IMAGE_"


def image(part: str) -> str:
    """The image of `kafka`, `postgres` or `spark`."""
    return os.environ.get(VARIABLE + part.upper()) or OFFICIAL[part]


if __name__ == "__main__":
    # For a shell: take the stand-ins.
    for name in OFFICIAL:
        print(f"export {VARIABLE}{name.upper()}={STAND_IN[name]}")
