"""A scenario for a program, as far as its source tells, and what it does not tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from harness.component import COMPONENTS, Mark, Recognised, SetsUp
from harness.load.dump import block, flow, flows, yaml_text
from harness.proposal.program import Chain, Origin, Program, Table, Value
from harness.scenario import Input
from harness.sinks import SINKS
from harness.workloads import make
from harness.workloads.base import Column

WORKLOAD = Input().workload
CHECKPOINT, IN_SCENARIO = "checkpointLocation", "{checkpoint}"
ASK = "CORRECT-ME"
"""What stands for a value that only the user knows."""
BY_VARIABLES = Value(Origin.LITERAL, "", "")
"""Variables of the client lead there."""
SQL = {"VARCHAR": "text", "DECIMAL(18,2)": "numeric(18, 2)"}


@dataclass(frozen=True)
class Use:
    """An address in a program: what it is called there, its value, and what a scenario says in its place."""

    what: str
    value: Value
    text: str


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """The text of a scenario file, and a line for each thing that the source does not tell."""

    text: str
    unclear: Sequence[str]


@dataclass(kw_only=True)
class _Options:
    """How a program is started, as far as its addresses are known."""

    flags: dict[str, str] = field(default_factory=dict)
    positions: dict[int, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    unclear: list[str] = field(default_factory=list)

    def take(self, use: Use) -> None:
        """Take an address from where the program does."""
        value = use.value
        match value.origin:
            case Origin.ARGUMENT:
                self.flags.setdefault(value.text, use.text)
            case Origin.POSITION:
                self.positions.setdefault(int(value.text), use.text)
            case Origin.VARIABLE:
                self.env.setdefault(value.text, use.text)
            case Origin.LITERAL if not value.text:
                # A run sets these variables.
                pass
            case Origin.LITERAL:
                words = f"{use.what} is written into the program ({value.text!r})"
                self.unclear.append(f"{value.at}: {words}: take it from an argument or a variable")
            case Origin.UNKNOWN:
                self.unclear.append(f"{value.at}: unknown where {use.what} comes from: {value.text}")

    def args(self, program: Program) -> list[str]:
        """Return the arguments, those that only the user knows to be corrected."""
        needed = {flag: ASK for flag, needed in program.arguments.items() if needed and flag not in self.flags}
        self.unclear += (f"{flag} is needed: give it a value in `args`" for flag in needed)
        given = [*self.flags.items(), *needed.items()]
        out = [word for flag, text in given if flag.startswith("-") for word in (flag, text)]
        out += (text for flag, text in given if not flag.startswith("-"))
        places = range(1, max([program.positions, *self.positions]) + 1)
        self.unclear += (f"argument {n} is needed: give it in `args`" for n in places if n not in self.positions)
        return out + [self.positions.get(place, ASK) for place in places]

    def variables(self, program: Program, given: Sequence[str]) -> dict[str, str]:
        """Return the environment in the same way; a run sets what begins as one of those `given`."""
        own = [name for name, needed in program.variables.items() if needed and not name.startswith(tuple(given))]
        needed = {name: ASK for name in own if name not in self.env}
        self.unclear += (f"the variable {name} is needed: give it a value in `env`" for name in needed)
        return self.env | needed


def propose(entry: str, name: str, program: Program) -> Proposal:
    """Return the scenario for the program `entry`."""
    options = _Options()
    marks = [
        (component, mark) for component in COMPONENTS if isinstance(component, Recognised) for mark in component.marks
    ]
    found = [(component.about.name, mark, use) for component, mark in marks for use in _uses(mark, program, name)]
    for _, _, use in found:
        options.take(use)
    options_of = (program.options, *(chain.options for chain in program.chains))
    saved = list(dict.fromkeys(options[CHECKPOINT] for options in options_of if CHECKPOINT in options))
    for value in saved:
        options.take(Use(f"the option {CHECKPOINT}", value, IN_SCENARIO))
    given = [mark.sets for _, mark, _ in found if mark.sets]
    options.unclear += _missing(program, [mark for _, mark, _ in found], saved=bool(saved))
    sinks = list(dict.fromkeys((component, mark) for component, mark, _ in found if mark.writes))
    table = program.tables[0] if program.tables else Table(name=name)
    options.unclear += (f"it writes into {each}, too: add a sink for it" for each in _others(sinks))
    options.unclear += (f"it writes the table {each.name}, too: add a sink for it" for each in program.tables[1:])
    sink, setup = _sink(sinks, table, name), _set_up(sinks, table, program)
    options.unclear += _columns(sinks, table)
    document = block(
        name=f"{name} survives any crash",
        pipeline=block(
            entry=entry, args=flows(options.args(program)), env=flow(options.variables(program, given)) or None
        ),
        setup=setup or None,
        sink=CommentedSeq(sink) or None,
        input=flow({"workload": WORKLOAD}),
        crash_points="all",
    )
    return Proposal(text=yaml_text(document), unclear=options.unclear)


def _others(sinks: Sequence[tuple[str, Mark]]) -> list[str]:
    """Return the components that it writes into beside the first."""
    names = list(dict.fromkeys(component for component, _ in sinks))
    return names[1:]


def _uses(mark: Mark, program: Program, name: str) -> Iterator[Use]:
    """Yield where a program has a mark."""
    text = Template(mark.text).safe_substitute(name=name)
    for chain in program.chains:
        if mark.option in chain.options and _fits(mark, chain):
            yield Use(f"the option {mark.option}", chain.options[mark.option], text)
    in_chain = any(mark.option in chain.options for chain in program.chains)
    if mark.option and mark.option in program.options and not mark.format and not in_chain:
        yield Use(f"the option {mark.option}", program.options[mark.option], text)
    for call in program.calls:
        if mark.call and call.name == mark.call:
            given = call.given.get(mark.argument, call.given.get("", BY_VARIABLES))
            yield Use(f"the address for {mark.call}", given, text)


def _fits(mark: Mark, chain: Chain) -> bool:
    writes = chain.kind in ("write", "writeStream")
    return mark.format in ("", chain.format) and (writes or not mark.writes)


def _missing(program: Program, marks: Sequence[Mark], *, saved: bool) -> Iterator[str]:
    """Yield what every pipeline has, and this source does not show."""
    if not any(not mark.writes for mark in marks):
        yield "no source was found: say in `args` or `env` where the pipeline reads its records"
    if not any(mark.writes for mark in marks):
        yield "no sink was found: say under `sink` where its rows are"
    if not saved:
        yield f"no {CHECKPOINT} was found: the pipeline must take it from an argument or a variable ({IN_SCENARIO})"


def _sink(sinks: Sequence[tuple[str, Mark]], table: Table, name: str) -> Iterator[CommentedMap]:
    if not sinks:
        return
    kind = sinks[0][0]
    target = table.name if _has_tables(kind) else name
    columns = ", ".join(table.columns) or "*"
    own = SINKS[kind].about.options.model_fields
    more = {"format": sinks[0][1].format} if "format" in own else {}
    yield block(
        {kind: target, **more},
        expected=f"select {columns} from ledger",
        key=flows(table.key or table.columns[:1] or ["id"]),
    )


def _has_tables(kind: str) -> bool:
    return isinstance(COMPONENTS.all().get(SINKS[kind].component), SetsUp)


def _set_up(sinks: Sequence[tuple[str, Mark]], table: Table, program: Program) -> CommentedMap | None:
    """Return the SQL that makes the table, where the program does not."""
    if not sinks or not _has_tables(sinks[0][0]) or table.name in program.created:
        return None
    types = {each.name: SQL.get(each.type, each.type.lower()) for each in _workload()}
    columns = table.columns or tuple(types)
    key = f", primary key ({', '.join(table.key)})" if table.key else ""
    listed = ", ".join(f"{each} {types.get(each, 'text')}" for each in columns)
    return block({sinks[0][0]: f"create table {table.name} ({listed}{key})"})


def _columns(sinks: Sequence[tuple[str, Mark]], table: Table) -> Iterator[str]:
    """Yield what has to be checked in the expected rows."""
    known = [each.name for each in _workload()]
    strange = [each for each in table.columns if each not in known]
    if strange:
        yield (
            f"{', '.join(strange)}: no column of the workload {WORKLOAD} ({', '.join(known)}). Replay records of your "
            "own (`input: {replay: data/records.jsonl, key: [id]}`), or say in `expected` what they are"
        )
    elif not table.columns:
        yield "the columns of the sink were not found: correct `expected` and `key`"
    if sinks and not table.key:
        yield f"the key of {table.name} was not found: correct `key`"


def _workload() -> Sequence[Column]:
    return make(Input(workload=WORKLOAD), seed=0, root=Path()).columns
