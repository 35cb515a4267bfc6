"""Delta tables: folders that driver and executors see. There is no server; each part of a run is a folder of its own.

folder   makes the folders, and finds the jars that Spark needs for Delta
sink     a table, read back without Spark
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from typing import TYPE_CHECKING

from harness.component import Look, Started
from harness.errors import StackError
from harness.fields.shape import Shape
from harness.kinds import About

if TYPE_CHECKING:
    from harness.hosts.processes import ProcessHost

INSTALL = "pip install 'onceproof[delta]'"


class Delta:
    """A folder of tables, and Delta's jars."""

    about = About(
        name="delta",
        summary="Delta tables in a folder, and the jars that a program puts under spark.jars; each part is a folder",
        example='conf: {spark.jars: "{delta.jars}"}',
        options=Shape,
    )
    gives = ("path", "jars")
    bare = ()

    @property
    def looks(self) -> tuple[Look, ...]:
        """What reads the tables back; the jars are fetched by who asks for them."""
        return (Look("delta", "the Python package deltalake", _client, INSTALL, optional=True),)

    def as_processes(self, host: ProcessHost) -> Started:
        """A folder of the session."""
        _client()
        from harness.components.delta.folder import DeltaFolder

        return DeltaFolder(host.session, host.java)


def _client() -> str:
    if importlib.util.find_spec("deltalake") is None:
        raise StackError(f"asked for delta; there is no Python package deltalake; {INSTALL}")
    return importlib.metadata.version("deltalake")


KIND = Delta()
