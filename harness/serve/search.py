"""Which runs of a store are asked for, from the query of an address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from harness.errors import UsageError
from harness.report.escape import visible
from harness.report.many.seen import Seen
from harness.scenario import Kind, Word

LONGEST = 200
KEYS = ("scenario", "verdict", "kind", "since", "until", "tag", "page")


@dataclass(frozen=True, kw_only=True)
class Query:
    """What is asked for; empty asks for all. Dates are whole days in UTC. `page` counts from 1."""

    scenario: str = ""
    verdict: str = ""
    kind: str = ""
    since: str = ""
    until: str = ""
    tag: str = ""
    page: int = 1


def parse(given: Mapping[str, Sequence[str]]) -> Query:
    """Return the query of an address, each key with its values. Raises UsageError for the first thing wrong."""
    for key, values in given.items():
        if key not in KEYS:
            raise UsageError(
                f"asked for {visible(key, 60)}; a search has {', '.join(KEYS)}. Take it out of the address"
            )
        if len(values) > 1:
            raise UsageError(f"asked for {key} {len(values)} times; a search has it once. Take the others out")
        if len(values[0]) > LONGEST:
            raise UsageError(
                f"asked for {key} of {len(values[0])} characters; it has {LONGEST} at most. Ask for a part"
            )
    one = {key: values[0].strip() for key, values in given.items() if values}
    _among("verdict", one.get("verdict", ""), Word)
    _among("kind", one.get("kind", ""), Kind)
    for key in ("since", "until"):
        _day(key, one.get(key, ""))
    number = one.pop("page", "") or "1"
    if not number.isdecimal() or not number.isascii() or not 0 < int(number) < 10**6:
        raise UsageError(f"asked for page={visible(number, 60)}; it is a number from 1. Take page out of the address")
    return Query(**one, page=int(number))


def found(runs: Sequence[Seen], query: Query) -> list[Seen]:
    """Return those that are asked for, the newest first."""
    words = query.scenario.casefold()
    return sorted(
        (
            seen
            for seen in runs
            if words in seen.scenario.casefold()
            and query.verdict in ("", seen.word)
            and (not query.kind or query.kind in seen.kinds)
            and (not query.tag or query.tag in seen.about.tags)
            and (not query.since or seen.about.started[:10] >= query.since)
            and (not query.until or "" < seen.about.started[:10] <= query.until)
        ),
        key=lambda seen: (seen.about.started, str(seen.folder)),
        reverse=True,
    )


def _among(key: str, value: str, words: type[Word] | type[Kind]) -> None:
    known = [word.value for word in words]
    if value and value not in known:
        raise UsageError(f"asked for {key}={visible(value, 60)}; it is one of {', '.join(known)}. Take one of them")


def _day(key: str, value: str) -> None:
    try:
        if value and date.fromisoformat(value).isoformat() != value:
            raise ValueError
    except ValueError:
        words = f"asked for {key}={visible(value, 60)}; it is a day such as 2026-12-31"
        raise UsageError(f"{words}. Write it that way") from None
