"""Delta tables: folders that driver and executors see. There is no server; each part of a run is a folder of its own.

sink   a table, read back without Spark
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.component import FETCH, Look, Mark, Started, installed
from harness.fields.shape import Shape
from harness.kinds import About

if TYPE_CHECKING:
    from harness.hosts.processes import ProcessHost

READER = "deltalake"
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
    marks = (Mark(text="{delta.path}/$name", option="path", format="delta", writes=True),)
    bare = ()

    @property
    def looks(self) -> tuple[Look, ...]:
        """What reads the tables back, and what Spark writes them by."""
        wanted = "Delta's jars for Spark, fetched when a scenario first asks for them"
        return (
            Look("delta reader", f"the Python package {READER}", _reader, INSTALL, optional=True),
            Look("delta jars", wanted, _jars, FETCH, optional=True),
        )

    def as_processes(self, host: ProcessHost) -> Started:
        """A folder of the session."""
        # Scenario files are read without what runs anything.
        from harness.sinks.table_folders import TableFolders

        _reader()
        return TableFolders(host.session, host.java, component=self.about.name, reader=READER)


def _reader() -> str:
    return installed("delta", READER)


def _jars() -> str:
    from harness.machine import jars

    return jars.there("spark-delta")


KIND = Delta()
