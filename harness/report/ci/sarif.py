"""SARIF 2.1.0, as code-scanning views read it: one result for each kind of finding in each sink of a run that is not as
expected, on the scenario's file; one for a run without an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from harness import __version__
from harness.report.causes.groups import cut
from harness.report.ci import places, run_text
from harness.report.ci.places import in_repository
from harness.report.escape import plural, visible
from harness.report.failure_text import headline, meaning, title
from harness.report.summary import Run
from harness.run_folder import store
from harness.scenario import Finding, Kind, Verdict, Word

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
KINDS = {kind: f"The sink holds what contradicts the guarantee: {kind}." for kind in Kind if kind is not Kind.RECOVERED}


def write(path: Path, runs: Sequence[Run], *, unread: Sequence[str] = ()) -> None:
    """Write the file, and its folder if it is not there. Raises HarnessError when the disk refuses."""
    with store.disk("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
    store.write(path, json.dumps(document(runs, unread=unread), indent=1) + "\n")


def document(runs: Sequence[Run], *, unread: Sequence[str] = ()) -> dict[str, Any]:
    """Return the log. `unread`: what was said of stored runs of which nothing can be said: a view must not take their
    silence for a pass."""
    invocation: dict[str, Any] = {"executionSuccessful": not unread}
    if unread:
        invocation["toolExecutionNotifications"] = [
            {"level": "error", "message": {"text": visible(text)}} for text in unread
        ]
    driver = {
        "name": "Onceproof",
        "semanticVersion": __version__,
        "rules": list(_rules()),
    }
    log = {
        "tool": {"driver": driver},
        "automationDetails": {"id": "onceproof/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [result for run in runs if not run.verdict.as_expected for result in _results(run)],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [log]}


def _rules() -> Iterator[dict[str, Any]]:
    texts = {_rule(kind): text for kind, text in KINDS.items()} | {word.value: meaning(word) for word in Word}
    for name, text in texts.items():
        words = f"{text[:1].upper()}{text[1:]}"
        yield {"id": name, "shortDescription": {"text": words}, "defaultConfiguration": {"level": "error"}}


def _rule(kind: Kind) -> str:
    return kind.value.replace(" ", "-")


def _results(run: Run) -> Iterator[dict[str, Any]]:
    """Of a violated run each kind of finding in each sink, once with its count; of another its word."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in run.verdict.findings:
        if finding.kind is not Kind.RECOVERED and run.verdict.word is Word.VIOLATED:
            groups.setdefault((_rule(finding.kind), finding.sink), []).append(finding)
    for (rule, sink), findings in groups.items():
        words = f"{_many(run.verdict, findings)} in {visible(sink, 100)}, for one: {title(findings[0])}"
        yield _result(run, rule, words, sink)
    if not groups:
        reason = "".join(run.verdict.reasons[:1]).partition("\n")[0]
        yield _result(run, run.verdict.word.value, visible(reason) or meaning(run.verdict.word), "")


def _many(verdict: Verdict, findings: Sequence[Finding]) -> str:
    """`500 rows duplicated`. Of a kind that is cut a verdict has one count, over all sinks, and rows of the first."""
    kind, rows = findings[0].kind, plural(sum(each.copies for each in findings), "row")
    first, count = cut(verdict).get(kind, (0, 0))
    if not first:
        return f"{rows} {kind}"
    if first == len(findings):
        return f"{count:,} findings, the first {first:,} of them {rows} {kind}"
    return f"at least {rows} {kind}"


def _result(run: Run, rule: str, words: str, sink: str) -> dict[str, Any]:
    again = run_text.command(run)
    text = f"{headline(run.scenario, run.verdict)}. {words}" + (f". Repeat it: {again}" if again else "")
    # Not by row or time: the same finding tomorrow is the same alert.
    identity = json.dumps([in_repository(run.file), run.scenario, rule, sink])
    out: dict[str, Any] = {
        "ruleId": rule,
        "level": "error",
        "message": {"text": text},
        "partialFingerprints": {"onceproof/v1": sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()},
        "properties": dict(run_text.properties(run)),
    }
    file = in_repository(run.file) if run.file else str(run.folder or "onceproof")
    if run.known:
        out["suppressions"] = [{"kind": "external", "status": "accepted", "justification": visible(run.known)}]
    place = {"uri": quote(file, errors="replace")}
    region = {"startLine": places.line(run.file) if run.file else 1}
    return out | {"locations": [{"physicalLocation": {"artifactLocation": place, "region": region}}]}
