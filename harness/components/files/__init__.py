"""Files in a folder of the run's own, which driver and executors see under one path.

source      files of records dropped into one
dropped     those files, and who writes them
forms       what such a file looks like, and what becomes of it
spark_log   which of them Spark's file source has taken
sink        files that the pipeline writes, read back
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.component import Mark, Started
from harness.fields.shape import Shape
from harness.kinds import About

if TYPE_CHECKING:
    from harness.hosts.processes import ProcessHost


class FilesComponent:
    """Folders on this machine."""

    about = About(
        name="files",
        summary="folders of the run's own; `files.input` is the one that the source files are dropped into",
        example='args: [--into, "{files.path}"]',
        options=Shape,
    )
    gives = ("path",)
    marks = tuple(
        Mark(text="{files.path}/$name", option="path", format=each, writes=True) for each in ("parquet", "json")
    )
    bare = ()

    def as_processes(self, host: ProcessHost) -> Started:
        """In the session's own folder, which goes with it."""
        from harness.session.part_folders import RunFolders

        component = self.about.name
        return RunFolders(host.session.folder / component, component=component, plain="output")


KIND = FilesComponent()
