"""A table format as a component: folders that driver and executors see, and the format's jars. There is no server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.component import FETCH, MachineCheck, Mark, Started, installed, pip_install
from harness.kinds import About

if TYPE_CHECKING:
    from harness.hosts.processes import ProcessHost


@dataclass(frozen=True, kw_only=True)
class TableFormat:
    """Each part of a run is one folder. `reader` is the Python package that reads the tables back."""

    about: About
    reader: str
    marks: tuple[Mark, ...] = ()
    gives = ("path", "jars")
    bare = ()

    @property
    def machine_checks(self) -> tuple[MachineCheck, ...]:
        """What reads the tables back, and what Spark writes them by."""
        name = self.about.name
        wanted = f"{name.capitalize()}'s jars for Spark, fetched when a scenario first asks for them"
        package = f"the Python package {self.reader}"
        return (
            MachineCheck(f"{name} reader", package, self._installed, pip_install(name), optional=True),
            MachineCheck(f"{name} jars", wanted, self._jars, FETCH, optional=True),
        )

    def as_processes(self, host: ProcessHost) -> Started:
        """Return a folder of the session."""
        # Scenario files are read without what runs anything.
        from harness.sinks.table_folders import TableFolders

        self._installed()
        return TableFolders(host.session, host.java, component=self.about.name, reader=self.reader)

    def _installed(self) -> str:
        return installed(self.about.name, self.reader)

    def _jars(self) -> str:
        from harness.machine import jars

        return jars.there(f"spark-{self.about.name}")
