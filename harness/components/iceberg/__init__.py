"""Iceberg tables of a Hadoop catalog: a folder that driver and executors see. There is no server; each part of a run is
a warehouse of its own.

sink   a table, read back without Spark
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.component import FETCH, Look, Started, installed
from harness.fields.shape import Shape
from harness.kinds import About

if TYPE_CHECKING:
    from harness.hosts.processes import ProcessHost

READER = "pyiceberg"
INSTALL = "pip install 'onceproof[iceberg]'"


class Iceberg:
    """A warehouse, and Iceberg's jars."""

    about = About(
        name="iceberg",
        summary="Iceberg tables in the folder of a Hadoop catalog, and the jars that a program puts under spark.jars",
        example='conf: {spark.jars: "{iceberg.jars}", spark.sql.catalog.lake.warehouse: "{iceberg.path}"}',
        options=Shape,
    )
    gives = ("path", "jars")
    bare = ()

    @property
    def looks(self) -> tuple[Look, ...]:
        """What reads the tables back, and what Spark writes them by."""
        wanted = "Iceberg's jars for Spark, fetched when a scenario first asks for them"
        return (
            Look("iceberg reader", f"the Python package {READER}", _reader, INSTALL, optional=True),
            Look("iceberg jars", wanted, _jars, FETCH, optional=True),
        )

    def as_processes(self, host: ProcessHost) -> Started:
        """A folder of the session."""
        # Scenario files are read without what runs anything.
        from harness.sinks.table_folders import TableFolders

        _reader()
        return TableFolders(host.session, host.java, component=self.about.name, reader=READER)


def _reader() -> str:
    return installed("iceberg", READER)


def _jars() -> str:
    from harness.machine import jars

    return jars.there("spark-iceberg")


KIND = Iceberg()
