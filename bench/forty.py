"""Forty programs against the judge: what each comes to was written down before the first run.

    PYTHONPATH=. .venv/bin/python bench/forty.py [--only NAME...] [-- OPTION of `onceproof run`...]

Each is a habit of `bench/programs/forty.py` under one schedule. The exit code is 1 where a verdict, its kinds or the
steps that are named as causes are not the predicted ones.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.predicted import divided, played

REPORTS = Path("reports/forty")
PROGRAM = Path("bench/programs/forty.py")
Steps = Sequence[dict[str, Any]]
AMOUNT = "cast(amount as decimal(12, 2))"
COLUMNS = "(id bigint{}, account text, amount numeric(12, 2){})"
ROWS = f"select id, account, {AMOUNT} as amount from ledger"
SUMS = f"select account, cast(sum({AMOUNT}) as decimal(18, 2)) as amount from ledger group by account"
TOTALS = "create table totals (account text primary key, amount numeric(18, 2))"
PLAIN = f"create table payments {COLUMNS.format('', '')}"
UNIQUE = f"create table payments {COLUMNS.format(' primary key', '')}"
KEPT = f"create table kept {COLUMNS.format('', ', batch int')}"
PAYMENTS: dict[str, Any] = {"postgres": "payments", "expected": ROWS, "key": ["id"]}
TOTAL: dict[str, Any] = {"postgres": "totals", "expected": SUMS, "key": ["account"]}


def committing(batch: int) -> Steps:
    """The sink has the batch, and Spark has not committed it."""
    return [{"when": {"batch": batch}, "do": "crash before offset commit"}]


def planned(batch: int) -> Steps:
    """The batch is planned, and nothing of it is written."""
    return [{"when": {"point": "batch-planned", "batch": batch}, "do": "kill driver"}]


def reached(failpoint: str, batch: int = 3) -> Steps:
    """A place in the program."""
    return [{"when": {"failpoint": failpoint, "batch": batch}, "do": "kill driver"}]


AWAY: Steps = [{"when": {"rows": 20, "batch": 2}, "do": "kill postgres", "for": "2s"}]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A habit under a schedule. `causes` are the steps that the findings name; none for those that runs without faults
    show too, and for what holds."""

    mode: str
    steps: Steps
    setup: str = PLAIN
    sink: Any = None
    expected: str | dict[str, Any] = "held"
    causes: tuple[int, ...] = ()
    guarantee: str = ""
    flags: tuple[str, ...] = ()


TWICE: dict[str, Any] = {"violated": ["duplicated"]}
GONE: dict[str, Any] = {"violated": ["lost"]}
WRONG: dict[str, Any] = {"violated": ["wrong aggregate"]}
ANYWAY: dict[str, Any] = {"violated": ["duplicated"], "without_faults": True}
VIEW = "create table base {}; create view payments as select id, account, amount from base b{}"
CLOCKED = COLUMNS.format("", ", loaded timestamptz default clock_timestamp()")
NEWEST = " where not exists (select from base n where n.id = b.id and n.loaded > b.loaded)"
PENDING = f"{UNIQUE}; create table pending {COLUMNS.format('', ', batch int')}"
STAGING = f"{PLAIN}; create table staging {COLUMNS.format('', '')}"
BATCHES = f"{PLAIN}; create table batches (batch int primary key)"
PARTS = (
    "create table parts (account text, batch int, amount numeric(18, 2), primary key (account, batch));"
    " create view totals as select account, sum(amount) as amount from parts group by account"
)
BOTH = [PAYMENTS, {**PAYMENTS, "postgres": "log"}]
CASES = {
    "appended": Case(mode="appended", steps=committing(3), expected=TWICE, causes=(1,)),
    "appended_planned": Case(mode="appended", steps=planned(3)),
    "appended_at_least": Case(mode="appended", steps=committing(3), guarantee="at-least-once", expected="untested"),
    "appended_at_least_planned": Case(mode="appended", steps=planned(3), guarantee="at-least-once"),
    "keyed": Case(mode="keyed", steps=committing(3), setup=UNIQUE),
    "keyed_twice": Case(mode="keyed", steps=[*committing(2), *committing(4)], setup=UNIQUE),
    "keyed_at_most_planned": Case(
        mode="keyed", steps=planned(3), setup=UNIQUE, guarantee="at-most-once", expected="untested"
    ),
    "buffered": Case(mode="buffered", steps=committing(4), setup=UNIQUE, expected=GONE, causes=(1,)),
    "buffered_at_most": Case(mode="buffered", steps=committing(4), setup=UNIQUE, guarantee="at-most-once", causes=(1,)),
    "flushed": Case(mode="flushed", steps=committing(4), setup=UNIQUE),
    "staged": Case(mode="staged", steps=reached("staged"), setup=STAGING, expected=TWICE, causes=(1,)),
    "cleared": Case(mode="cleared", steps=reached("staged"), setup=STAGING),
    "accumulated": Case(mode="accumulated", steps=committing(3), setup=TOTALS, sink=TOTAL, expected=WRONG, causes=(1,)),
    "added": Case(mode="added", steps=committing(3), setup=TOTALS, sink=TOTAL, expected=WRONG, causes=(1,)),
    "recounted": Case(mode="recounted", steps=committing(3), setup=f"{UNIQUE}; {TOTALS}", sink=TOTAL),
    "by_batch": Case(mode="by_batch", steps=committing(3), setup=PARTS, sink=TOTAL),
    "highest": Case(
        mode="highest", steps=committing(3), setup=TOTALS, sink={**TOTAL, "expected": SUMS.replace("sum(", "max(")}
    ),
    "accounts": Case(
        mode="accounts",
        steps=committing(3),
        setup="create table accounts (account text primary key)",
        sink={"postgres": "accounts", "expected": "select distinct account from ledger", "key": ["account"]},
    ),
    "second_phase": Case(mode="second_phase", steps=planned(4), setup=PENDING, expected=GONE, causes=(1,)),
    "second_phase_kept": Case(mode="second_phase_kept", steps=planned(4), setup=PENDING),
    "reconciled": Case(mode="reconciled", steps=committing(3)),
    "reconciled_at_start": Case(
        mode="reconciled_at_start", steps=[*committing(2), *planned(4)], expected=TWICE, causes=(1,)
    ),
    "viewed": Case(mode="viewed", steps=committing(3), setup=VIEW.format(COLUMNS.format(" primary key", ""), "")),
    "viewed_by_clock": Case(
        mode="viewed_by_clock",
        steps=committing(3),
        setup=VIEW.format(CLOCKED, NEWEST),
        sink={**PAYMENTS, "view": "deduplicated"},
        expected="untested",
    ),
    "swallowed": Case(mode="swallowed", steps=AWAY, setup=UNIQUE, expected=GONE, causes=(1,)),
    "retried": Case(mode="retried", steps=AWAY, setup=UNIQUE),
    "doubles": Case(mode="doubles", steps=committing(2), expected=ANYWAY),
    "repeats": Case(mode="repeats", steps=planned(3), expected=ANYWAY),
    "seen_in_memory": Case(mode="seen_in_memory", steps=committing(3), expected=TWICE, causes=(1,)),
    "seen_in_table": Case(mode="seen_in_table", steps=committing(3)),
    "numbered": Case(mode="numbered", steps=committing(3), setup=BATCHES),
    "numbered_before": Case(
        mode="numbered_before", steps=reached("between"), setup=BATCHES, expected=GONE, causes=(1,)
    ),
    "numbered_after": Case(mode="numbered_after", steps=reached("between"), setup=BATCHES, expected=TWICE, causes=(1,)),
    "replaced": Case(
        mode="replaced",
        steps=committing(3),
        setup=KEPT,
        sink={**PAYMENTS, "postgres": "select id, account, amount from kept"},
    ),
    "replaced_apart": Case(
        mode="replaced_apart",
        steps=reached("deleted"),
        setup=KEPT,
        sink={**PAYMENTS, "postgres": "select id, account, amount from kept"},
    ),
    "forgets": Case(mode="appended", steps=planned(3), flags=("--forgets",), expected=TWICE, causes=(1,)),
    "forgets_keyed": Case(mode="keyed", steps=planned(3), setup=UNIQUE, flags=("--forgets",)),
    "persists": Case(mode="keyed", steps=AWAY, setup=UNIQUE, flags=("--persists",)),
    "persists_row_by_row": Case(mode="row_by_row", steps=AWAY, flags=("--persists",), expected=TWICE, causes=(1,)),
    "two_tables": Case(
        mode="two_tables",
        steps=committing(3),
        setup=f"{UNIQUE}; create table log {COLUMNS.format('', '')}",
        sink=BOTH,
        expected=TWICE,
        causes=(1,),
    ),
    "two_tables_between": Case(
        mode="two_tables",
        steps=reached("between"),
        setup=f"{UNIQUE}; create table log {COLUMNS.format('', '')}",
        sink=BOTH,
    ),
}


def scenario(name: str, case: Case) -> dict[str, Any]:
    """What the file of a case says."""
    args = ["--bootstrap", "{kafka.bootstrap}", "--topic", "{topic}", "--checkpoint", "{checkpoint}"]
    pipeline = {
        "entry": str(PROGRAM.resolve()),
        "args": [*args, "--mode", case.mode, *case.flags],
        "env": {"DATABASE_URL": "{postgres.dsn}"},
    }
    sinks = case.sink if isinstance(case.sink, list) else [case.sink or PAYMENTS]
    out = {
        "name": name.replace("_", " "),
        "why": f"predicted: {case.expected}",
        "pipeline": pipeline,
        "setup": {"postgres": case.setup},
        "sink": sinks,
        "input": {"workload": "transactions", "records": 600},
        "schedule": [*case.steps],
        "verdict": case.expected,
        "timeout": "240s",
    }
    return out | ({"guarantee": case.guarantee} if case.guarantee else {})


def differences(verdict: dict[str, Any], case: Case) -> Iterator[str]:
    """What of a verdict is not as predicted."""
    if not verdict["as_expected"]:
        yield f"{verdict['word']}: {'; '.join(verdict['reasons'])}"
    if missed := [step["name"] for step in verdict["steps"] if not step["injected"]]:
        yield f"not struck: {', '.join(missed)}"
    causes = {cause for finding in verdict["findings"] for cause in finding["faults"]}
    attempts = {number: step["attempt"] for number, step in enumerate(verdict["steps"], 1)}
    named = {number for number, at in attempts.items() for cause in causes if cause.endswith(f"attempt {at}")}
    if named != set(case.causes):
        yield f"causes: {sorted(causes)}"


def main() -> int:
    own, options = divided(sys.argv[1:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[*CASES], metavar="NAME", choices=CASES)
    chosen = parser.parse_args(own).only
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir(parents=True)
    files = [REPORTS / f"{name}.yaml" for name in chosen]
    for file in files:
        file.write_text(json.dumps(scenario(file.stem, CASES[file.stem]), indent=1), encoding="utf-8")
    return played(files, REPORTS, options, lambda name, verdict: differences(verdict, CASES[name]))


if __name__ == "__main__":
    sys.exit(main())
