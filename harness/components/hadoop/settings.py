"""The files of settings of a Hadoop daemon: `core-site.xml` and its like, and where its log goes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

Sites = Mapping[str, Mapping[str, str]]
"""By the name of a file without `-site.xml` (`core`, `hdfs`, `yarn`), its settings."""
LOGGING = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.out
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


def lay_out(folder: Path, sites: Sites) -> None:
    """Write them, and the settings of log4j, into `folder`, which is made."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, settings in sites.items():
        (folder / f"{name}-site.xml").write_text(site(settings), encoding="utf-8")
    (folder / "log4j.properties").write_text(LOGGING, encoding="utf-8")


def site(settings: Mapping[str, str]) -> str:
    """Return settings as Hadoop's XML."""
    lines = (
        f"  <property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in settings.items()
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<configuration>\n{"".join(lines)}</configuration>\n'
