"""The verbs of the command line."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Collection, Sequence
from functools import reduce
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from harness import __version__
from harness.cli.error_lines import CarefulGroup
from harness.cli.ranges import Range
from harness.cli.stack_name import StackName
from harness.cli.start_help import StartCommand
from harness.errors import UsageError
from harness.fields.own_kinds import load_own_kinds
from harness.fields.paths import find
from harness.fields.shards import Shard
from harness.report.escape import aligned, plural
from harness.stacks import DEFAULT
from harness.stacks.addresses import ADDRESS_OPTIONS, AT, where

if TYPE_CHECKING:
    from harness.scenario import Scenario
    from harness.suite.options import Options

CODES = """Exit codes: 0 all as expected; 1 a guarantee disproved (or a broken version not caught); 2 usage or an
invalid file; 3 inconclusive or untested; 4 the stack could not come up or the harness failed; 130 interrupted."""
PATHS = click.Path(path_type=Path)
Command = Callable[..., Any]


@click.group(
    cls=CarefulGroup, epilog=CODES, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="onceproof")
def main() -> None:
    """Tells the truth about one sentence: my Spark pipeline delivers exactly once."""


def found(paths: Sequence[Path]) -> list[Path]:
    """Return the scenario files among `paths`, once the kinds of their repositories are known."""
    files = find(paths)
    load_own_kinds(files)
    return files


def know() -> None:
    """Load the kinds of the current folder's repository. What a stored run says never decides which code is run."""
    load_own_kinds([Path.cwd()])


def together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return one decorator that adds all these options."""

    def add(command: Command) -> Command:
        return reduce(lambda done, option: option(done), options, command)

    return add


FILES = click.argument("paths", nargs=-1, required=True, type=PATHS, metavar="PATH...")
RUN = click.argument("run", type=PATHS)
SEED = click.option("--seed", type=click.IntRange(min=0, max=2**63 - 1), help="Instead of each scenario's own.")
SPARK = click.option(
    "--spark",
    metavar="VERSION",
    help="The Spark version, such as 3.5, for scenarios that name none.  [default: the installed one]",
)
PLACED = together(
    click.option("--reports", type=PATHS, default=Path("reports"), show_default=True,
                 help="Where run folders and reports go."),
    click.option("--jobs", "-j", type=click.IntRange(min=1), default=None,
                 help="How many runs at once, on one stack.  [default: by cores and memory]"),
    click.option("--own-stack", is_flag=True, help="Start a stack even where `onceproof up` left one."),
    click.option("--stack", type=StackName(), default=DEFAULT,
                 show_default=True, help="Where it runs; `external` is a cluster that is there already."),
    *(click.option(f"--{name.replace('_', '-')}", metavar=word, multiple=name == AT, help=f"{text}.")
      for name, (word, text) in ADDRESS_OPTIONS.items()),
)  # fmt: skip
"""Where runs are played, and how many at once."""
RUNNING = together(
    click.option("--junit", type=PATHS, default=None, metavar="FILE",
                 help="Write JUnit's XML too, one test case a run."),
    click.option("--keep", type=click.Choice(["failed", "all", "none"]), default="all", show_default=True,
                 help="Which run folders stay."),
    click.option("--repeat", type=click.IntRange(min=1), default=1, show_default=True,
                 help="How often to run each; all must be as expected."),
    click.option("--skip-unsupported", is_flag=True, help="Leave out, by name, what the stack does not support."),
    click.option("--verbose", "-v", is_flag=True, help="Tell what is not as expected with its evidence and rows."),
    PLACED,
)  # fmt: skip
"""What `run` and `replay` share."""


def spark_version_of(spark: str | None) -> str:
    """Return the Spark version that `--spark` names; empty without it. Raises UsageError."""
    from harness.machine import spark_versions

    return "" if spark is None else spark_versions.chosen(spark)


def options(*, spark: str | None = None, **given: Any) -> Options:
    """Return the options of the suite. Raises UsageError if an address of a cluster is missing, or is not used."""
    from harness.suite.options import Options

    places = {name: given.pop(name) for name in ADDRESS_OPTIONS}
    return Options(spark=spark_version_of(spark), where=where(given["stack"], places), **given)


@main.command(cls=StartCommand)
@click.argument("name")
@click.option("--sink", default="postgres", show_default=True, help="The kind of sink that the pipeline writes into.")
@click.option("--shape", default="map-only", show_default=True, help="What it does with its input.")
def new(name: str, sink: str, shape: str) -> None:
    """Write a scenario and a small pipeline that it proves, to start from."""
    from harness.sinks.starts.write import scaffold

    for path in scaffold(name, sink, shape, Path()):
        click.echo(f"wrote {path}")
    click.echo(f"next: onceproof run scenarios/{name}.yaml")


@main.command()
@click.argument("program", type=PATHS)
def init(program: Path) -> None:
    """Propose a scenario for a program that is there, from its source. Nothing is run."""
    from harness.proposal.write import write

    know()
    path, open_points = write(program)
    click.echo(f"wrote {path}")
    for line in open_points:
        click.echo(f"to fill in: {line}")
    click.echo(f"next: onceproof validate {path}, then onceproof run {path}")


@main.command()
@FILES
@click.option("--stack", type=StackName(), help="Say also what this stack does not support.")
@click.option("--spark", metavar="VERSION", help="Say also what this Spark version does not do.")
def validate(paths: tuple[Path, ...], stack: str | None, spark: str | None) -> None:
    """Report every mistake in scenario files. Nothing is started."""
    from harness.load import load_all
    from harness.stacks.other_versions import on
    from harness.stacks.supported import not_run, refuse, without_address

    files, version = found(paths), spark_version_of(spark)
    scenarios = [on(each, version) for each in load_all(files, queries=True)]
    if stack or version:
        refuse(scenarios, stack or DEFAULT)
    missing = [not_run(each.path, lacking) for each in scenarios if (lacking := without_address(each, stack or "", ()))]
    click.echo("\n".join([f"OK: {plural(len(scenarios), 'scenario')}", *missing]))


@main.command(name="list")
@click.argument("paths", nargs=-1, type=PATHS, metavar="[PATH]...")
def list_(paths: tuple[Path, ...]) -> None:
    """Show scenarios: file, steps, what is expected, name."""
    from harness.load import load_all

    scenarios = load_all(found(paths or (Path("scenarios"),)))
    for line in aligned([(s.path, _steps(s), str(s.verdict), s.name) for s in scenarios], columns()):
        click.echo(line)


def columns() -> int:
    """Return how wide the terminal is that stdout is; 0 where it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def _steps(scenario: Scenario) -> str:
    return "sweep" if scenario.crash_points else plural(len(scenario.schedule), "step")


@main.command()
@click.option("--markdown", is_flag=True, help="As the page docs/kinds.md.")
def kinds(markdown: bool) -> None:
    """Show the kinds that there are, also those of installed packages and of the repository's conftest.py."""
    from harness.cli import kinds as page

    know()
    for line in page.markdown() if markdown else page.lines():
        click.echo(line)


@main.command()
@FILES
@click.option("-k", "words", multiple=True, metavar="WORD", help="Only files whose name holds WORD (or another -k).")
@SEED
@click.option("--shard", metavar="I/N", help="Only the I-th of N parts, by the sorted paths of the files.")
@click.option("--dry-run", is_flag=True, help="Print the plans and touch nothing.")
@SPARK
@RUNNING
@click.pass_context
def run(
    ctx: click.Context,
    /,
    *,
    paths: tuple[Path, ...],
    words: tuple[str, ...],
    shard: str | None,
    dry_run: bool,
    **rest: Any,
) -> None:
    """Put scenarios to the test: their schedules, or all crash points of those that say so."""
    files = chosen(paths, words, shard)
    if dry_run:
        from harness.load import load_all
        from harness.stacks.other_versions import on
        from harness.stacks.supported import refuse, unsupported

        version, stack = spark_version_of(rest["spark"]), rest["stack"]
        scenarios = [on(each, version) for each in load_all(files)]
        if not rest["skip_unsupported"]:
            refuse(scenarios, stack)
        show_plans([each for each in scenarios if not unsupported(each, stack)], rest["seed"])
        return
    from harness.sweep import command

    ctx.exit(command.run(files, options(**rest)))


def chosen(paths: Sequence[Path], words: Sequence[str], shard: str | None = None) -> list[Path]:
    """Return the scenario files among `paths` that one of `words` picks, of the part `shard`. Raises UsageError if it
    is none: a machine that tested nothing must not be green."""
    part = None if shard is None else Shard.parse(shard, "--shard")
    there = find(paths)
    files = [file for file in there if not words or any(word in file.stem for word in words)]
    if not files:
        names = ", ".join(file.stem for file in there)
        raise UsageError(f"asked for -k {' -k '.join(words)}; saw no such scenario among {names}")
    if part is not None:
        count = len(files)
        files = part.pick(files, lambda file: file)
        if not files:
            raise UsageError(f"asked for --shard {part} of {plural(count, 'scenario')}; it has none. Use fewer shards")
    load_own_kinds(files)
    return files


def show_plans(scenarios: Sequence[Scenario], seed: int | None) -> None:
    """One JSON document a scenario."""
    from harness.run.plan import plan, text

    for scenario in scenarios:
        click.echo(text(plan(scenario, seed=scenario.seed if seed is None else seed)), nl=False)


@main.command()
@FILES
@SEED
@click.option("--pairs", is_flag=True, help="Crash also the recovery from each crash of the driver.")
@click.option("--for", "for_", metavar="TIME", help="Begin no run that would not end by then, e.g. 20m.")
@click.option("--dry-run", is_flag=True, help="Watch the pipeline, print its cells, and crash nothing.")
@click.option("--shrink", is_flag=True, help="Play violated cells again, smaller for as long as they break.")
@click.option("--since", default="", metavar="COMMIT", help="Only pipelines of which a file has changed since, by git.")
@SPARK
@click.option("--junit", type=PATHS, default=None, metavar="FILE", help="Write JUnit's XML too, one test case a cell.")
@PLACED
@click.pass_context
def sweep(
    ctx: click.Context,
    /,
    *,
    paths: tuple[Path, ...],
    for_: str | None,
    pairs: bool,
    dry_run: bool,
    since: str,
    shrink: bool,
    **rest: Any,
) -> None:
    """Crash the pipelines of scenarios at every crash point that they have.

    A run without faults shows the crash points. The schedules of the files are not played."""
    from math import inf

    from harness.nightly.command import seconds
    from harness.sweep import command

    load_own_kinds(find(paths))
    for_s = inf if for_ is None else seconds(for_)
    chosen = command.SweepOptions(pairs=pairs, for_s=for_s, dry_run=dry_run, since=since, shrink=shrink)
    ctx.exit(command.sweep(paths, options(**rest), chosen))


@main.command()
@click.argument("paths", nargs=-1, required=True, type=PATHS, metavar="SCENARIOS...")
@click.option("--for", "for_", required=True, metavar="TIME", help="How long it may take, e.g. 2h.")
@click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**63 - 1),
    help="Of the plans.  [default: of the night to go on with, else the date, as 20261231]",
)
@click.option("--shard", default="1/1", show_default=True, metavar="I/N", help="The I-th of N machines.")
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(min=1, max=8),
    help="How many runs at once, each on its own stack.  [default: by cores and memory]",
)
@click.option(
    "--stack",
    type=StackName(side_by_side=True),
    default=DEFAULT,
    show_default=True,
    help="Where it runs.",
)
@click.option(
    "--reports",
    type=PATHS,
    default=Path("reports/nightly"),
    show_default=True,
    help="Where its state, run folders and failing plans go.",
)
@click.option(
    "--corpus",
    type=PATHS,
    default=Path("scenarios/regressions"),
    show_default=True,
    help="Known failing plans, played first; need not be there.",
)
@click.option(
    "--disk",
    type=Range(min=0.1, max=1e6),
    default=2.0,
    show_default=True,
    metavar="GIB",
    help="What the kept run folders may take.",
)
@click.pass_context
def nightly(ctx: click.Context, /, paths: tuple[Path, ...], for_: str, **rest: Any) -> None:
    """Draw schedules for the pipelines of SCENARIOS and play them until the time is up.

    The same seed and shard give the same plans; a night that was killed goes on where it was. Standard output gets one
    line, for a chat."""
    from datetime import UTC, datetime

    from harness.nightly.command import GIB, NightOptions, seconds
    from harness.nightly.command import nightly as play

    load_own_kinds(find(paths))
    today = datetime.now(UTC).date()  # the day of a run is that of its start, in UTC
    chosen = NightOptions(
        paths=paths,
        for_s=seconds(for_),
        shard=Shard.parse(rest.pop("shard"), "--shard"),
        disk=int(rest.pop("disk") * GIB),
        **rest,
    )
    ctx.exit(play(chosen, today=today))


@main.command()
@RUN
@RUNNING
@click.pass_context
def replay(ctx: click.Context, /, run: Path, **rest: Any) -> None:
    """Run the plan of the stored run RUN again."""
    from harness import suite

    know()
    ctx.exit(suite.replay(run, options(**rest)))


@main.command()
@RUN
@click.pass_context
def check(ctx: click.Context, /, run: Path) -> None:
    """Judge the stored run RUN again, from its folder alone."""
    from harness import suite

    know()
    ctx.exit(suite.check(run))


@main.command()
@click.argument("folders", nargs=-1, required=True, type=PATHS, metavar="DIR...")
@click.option("--out", type=PATHS, metavar="DIR", help="Where the page of many runs goes.  [default: reports/merged]")
@click.option("--sarif", type=PATHS, metavar="FILE", help="Write what failed as SARIF 2.1.0 too, for code scanning.")
@click.pass_context
def report(ctx: click.Context, /, folders: tuple[Path, ...], out: Path | None, sarif: Path | None) -> None:
    """Write the HTML reports of stored runs again.

    A DIR that is a run folder gets its page. Any other is searched for run folders and summaries, such as CI's
    artefacts of several machines: one page shows them all, with links to theirs."""
    from harness import suite

    know()
    ctx.exit(suite.report(folders, sarif, out))


@main.command()
@click.argument("reports", type=PATHS, default=Path("reports"), required=False, metavar="[REPORTS]")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of this machine alone.  [default: any]")
def serve(reports: Path, port: int) -> None:
    """Show the stored runs in a browser: a list with a search, and their pages. Read only, for this machine alone."""
    from harness.serve.server import serve as shown

    shown(reports, port, click.echo)


@main.command()
@RUN
@click.argument("key")
def explain(run: Path, key: str) -> None:
    """Tell the story of one record of the stored run RUN: sent when, answered how, in which batches, in which rows.

    KEY is the key of a row (205, id=205, a=1,b=2), a record's place (@PARTITION/OFFSET) or its number (#204)."""
    from harness.report.story.collect import collected
    from harness.report.story.lines import lines
    from harness.run_folder import digests

    know()
    for line in lines(collected(digests.opened(run), key)):
        click.echo(line)


@main.command()
@click.argument("paths", nargs=-1, type=PATHS, metavar="[PATH]...")
@click.option(
    "--idle",
    type=Range(min=0.05, max=1440),
    default=30.0,
    show_default=True,
    metavar="MINUTES",
    help="It ends by itself when no run has used it for so long.",
)
def up(paths: tuple[Path, ...], idle: float) -> None:
    """Start a stack that stays for the next `run`, `replay` and pytest: with the components that the scenarios need,
    all that can be shared without any."""
    from harness.suite import shared_owner as owner

    names = owner.shareable(components_of(paths))
    found = owner.start(names, idle * 60, kinds=paths or [Path.cwd()])
    click.echo(f"up: Spark{''.join(f', {name}' for name in found.components)}; onceproof down ends it")


def components_of(paths: Sequence[Path]) -> Collection[str]:
    """Return what the scenarios among `paths` need; nothing without any. Raises ScenarioError."""
    if not paths:
        know()
        return ()
    from harness.load import load_all
    from harness.stacks.needed_parts import needed

    return needed(load_all(found(paths)))


@main.command()
@click.option("--now", is_flag=True, help="Also while another command uses it.")
def down(now: bool) -> None:
    """End the stack that `onceproof up` started."""
    from harness.suite import shared_owner as owner

    click.echo("down" if owner.end(now=now) else "no stack is up")


@main.command()
@click.pass_context
def doctor(ctx: click.Context, /) -> None:
    """Check this machine: what the stack needs, what was found, the cure."""
    from harness.cli.doctor import check, fit, lines, ready
    from harness.errors import StackError

    requirements = check()
    for line in (*lines(requirements, columns()), *wrap(ready(requirements), columns() or sys.maxsize)):
        click.echo(line)
    ctx.exit(0 if fit(requirements) else StackError.exit_code)
