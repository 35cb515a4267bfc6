"""The help of `onceproof new`: which sinks and shapes there are. The kinds are loaded for who asks for it alone."""

from __future__ import annotations

import click


class StartCommand(click.Command):
    """A command whose help ends with both lists."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A line each."""
        from harness.sinks import SINKS
        from harness.sinks.starts.shapes import SHAPES
        from harness.sinks.starts.write import starts

        sinks = []
        for name, start in starts().items():
            only = "" if set(SHAPES) <= set(start.shapes) else f"; takes {', '.join(start.shapes)}"
            sinks.append((name, f"{SINKS[name].about.summary}{only}"))
        with formatter.section("Sinks"):
            formatter.write_dl(sinks)
        with formatter.section("Shapes"):
            formatter.write_dl([(name, shape.summary) for name, shape in SHAPES.items()])
