"""JUnit's XML of a suite, in the form that GitLab, Jenkins and others read: one test case a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as Xml

from harness.report.ci import run_text
from harness.report.ci.places import in_repository
from harness.report.escape import visible
from harness.report.failure_text import headline
from harness.report.summary import Run, exit_code
from harness.run_folder import store
from harness.scenario import Word

ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(path: Path, runs: Sequence[Run]) -> None:
    """Write the file, whole or not at all. Raises HarnessError when the disk refuses."""
    store.write(path, text(runs))


def begin(path: Path) -> None:
    """Take away what an earlier suite left, which must not be read as this one's. Raises HarnessError if the file could
    not be written either."""
    with store.disk("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)


def text(runs: Sequence[Run]) -> str:
    """Return the document. A run that could not be judged as the scenario expects is a failure, one without a verdict
    an error; a known failure is skipped."""
    wrong = [run for run in runs if run.wrong]
    errors = sum(run.verdict.word is Word.ERROR for run in wrong)
    counts = {
        "tests": str(len(runs)),
        "failures": str(len(wrong) - errors),
        "errors": str(errors),
        "skipped": str(sum(bool(run.known) for run in runs)),
        "time": f"{sum(run.seconds for run in runs):.3f}",
    }
    root = Xml.Element("testsuites", counts)
    suite = Xml.SubElement(root, "testsuite", {"name": "onceproof", **counts})
    _properties(suite, [("exit_code", str(exit_code(runs)))])
    for run in runs:
        _case(suite, run)
    for element in root.iter():
        element.attrib = {name: _legal(value) for name, value in element.attrib.items()}
        element.text = _legal(element.text) if element.text else element.text
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _legal(text: str) -> str:
    """Without the characters that no XML may hold; a path may."""
    return ILLEGAL.sub("\ufffd", text)


def _case(suite: Xml.Element, run: Run) -> None:
    file = visible(in_repository(run.file)) if run.file else ""
    place = {"classname": file.removesuffix(".yaml").replace("/", ".") or "onceproof"} | (
        {"file": file} if file else {}
    )
    case = Xml.SubElement(suite, "testcase", {**place, "name": visible(run.scenario), "time": f"{run.seconds:.3f}"})
    _properties(case, run_text.properties(run))
    if run.known:
        Xml.SubElement(case, "skipped", {"message": f"known: {visible(run.known)}"})
    elif run.wrong:
        word = run.verdict.word
        about = {"type": word.value, "message": headline(run.scenario, run.verdict)}
        Xml.SubElement(case, "error" if word is Word.ERROR else "failure", about).text = run_text.failure(run)


def _properties(element: Xml.Element, pairs: Sequence[tuple[str, str]]) -> None:
    holder = Xml.SubElement(element, "properties")
    for name, value in pairs:
        Xml.SubElement(holder, "property", {"name": name, "value": value})
