"""Images of containers: the official one, pinned by tag, is the default; each is a setting.

`ONCEPROOF_IMAGE_KAFKA` and its like name others: a mirror's, your own Spark with your pipeline's packages, or the
stand-ins that `docker/build.py` makes where no image registry is reached. `docker-compose.yml` names the official ones;
a test holds it to that.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

VARIABLE = "ONCEPROOF_IMAGE_"


@dataclass(frozen=True)
class Image:
    """What a part is run from; `stand_in` is what `docker/build.py` calls ours."""

    part: str
    official: str
    stand_in: str

    @property
    def variable(self) -> str:
        """The setting that names another one."""
        return VARIABLE + self.part.upper()

    @property
    def name(self) -> str:
        """The one to take."""
        return os.environ.get(self.variable) or self.official
