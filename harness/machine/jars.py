"""The jars that the components ask for, a broker's own and connectors for Spark: fetched once, checked at every start.

Fetched by the Ivy inside the pyspark wheel, with settings and a cache of our own: a local Maven repository is never
read, because a POM that some build left there without its jar breaks the resolution. After that no network and
no JVM is needed. `jars.sha256` beside this file pins what each jar must be.

    python -m harness.machine.jars            fetch what is missing and print the folders
    python -m harness.machine.jars --pin      every component's for every Spark version: the text of jars.sha256
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from harness.errors import StackError
from harness.machine import cache, fetch_progress, java, spark_versions
from harness.machine.published import Published
from harness.machine.spark_versions import SparkVersion
from harness.run_folder.store import digest
from harness.wait import locked

MIRROR = "ONCEPROOF_MAVEN_ROOT"
PINS = Path(__file__).with_name("jars.sha256")
COMPONENTS = Path(__file__).parents[1] / "components"
MANIFEST = "manifest.json"
ALWAYS = ("broker", "spark")
"""The class paths that are fetched for every stack, if components ask for them."""
FETCH_S = 600.0
LOCK_S = 900.0
ALONE = "@jar"
"""What the text of a coordinate ends with that means the jar alone."""
SIZES = "megabytes"
"""What a `jars.json` has beside class paths: about how much is fetched for each."""
OF_VERSION = "@"
"""Separates the name of a class path in a `jars.json` from the Spark version that it is for (`spark-delta@3.5`)."""
SPARKS = "org.apache.spark"
# What the pyspark wheel ships itself, or what is only annotations. A second copy would shadow Spark's own.
SHIPPED = (
    "com.github.luben",
    "com.google.code.findbugs",
    "org.apache.hadoop",
    "org.checkerframework",
    "org.lz4",
    "org.scala-lang",
    "org.scala-lang.modules",
    "org.slf4j",
    "org.xerial.snappy",
)


@dataclass(frozen=True)
class Coordinate:
    """What Maven calls a library. `alone`: that one jar, without what it depends on; `classifier` is which of its
    jars."""

    organisation: str
    name: str
    version: str
    classifier: str = ""
    alone: bool = False

    def __str__(self) -> str:
        words = [self.organisation, self.name, self.version, *filter(None, [self.classifier])]
        return f"{':'.join(words)}{ALONE if self.alone else ''}"


def coordinate(text: str) -> Coordinate:
    """Of `organisation:name:version`, with `:classifier` and `@jar` where they are meant."""
    words = text.removesuffix(ALONE)
    organisation, name, version, *more = words.split(":")
    return Coordinate(organisation, name, version, classifier=":".join(more), alone=words != text)


@dataclass(frozen=True)
class JarFolder:
    """One class path to fetch: what is asked for, whose jars to leave out, and beside which Spark's own jars they
    come."""

    name: str
    wanted: tuple[Coordinate, ...]
    left_out: tuple[str, ...] = ()
    home: Path | None = None

    def key(self) -> str:
        """Return the folder's name: changes with anything that changes what is fetched."""
        text = json.dumps([*map(str, self.wanted), *self.left_out])
        return f"{self.name}-{self.wanted[0].version}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class Jars:
    """The class paths, in a fixed order; `digest` changes when any jar does."""

    broker: tuple[Path, ...]
    spark: tuple[Path, ...]
    digest: str


def resolve(found: java.Java | None = None, version: SparkVersion | None = None) -> Jars:
    """Return every jar, checked against its pin; fetched first when the cache lacks it. `found` saves a search for
    Java; without a `version` those for Spark are for the installed one.

    Raises StackError when the network is needed and not there, or when a jar is not what it was."""
    folders = jar_folders(version)
    with ThreadPoolExecutor(max_workers=2) as pool:
        ready = pool.map(lambda folder: _ready(folder, found), folders)
        return _jars({folder.name: jars for folder, jars in zip(folders, ready, strict=True)})


def cached() -> Jars | None:
    """Return what `resolve` would give without a network; None when something was never fetched. Raises StackError
    too."""
    folders = {each.name: cache.root() / "jars" / each.key() for each in jar_folders()}
    if not all((folder / MANIFEST).is_file() for folder in folders.values()):
        return None
    return _jars({name: verified(folder) for name, folder in folders.items()})


def there(name: str) -> str:
    """Return what was fetched of one more class path: the version of what it asks for first. Raises StackError where it
    is not there yet."""
    jars = _jar_folder(name)
    if not (cache.root() / "jars" / jars.key() / MANIFEST).is_file():
        raise StackError(f"{jars.wanted[0].version} is not fetched yet")
    return jars.wanted[0].version


def fetched(name: str, found: java.Java | None = None, version: SparkVersion | None = None) -> tuple[Path, ...]:
    """Return the jars of one more class path, for the installed Spark without a `version`. Raises StackError as
    `resolve` does."""
    return tuple(_ready(_jar_folder(name, version), found))


def spark_home() -> Path:
    """Return the pyspark wheel's own folder, found without importing it. Raises StackError when it is not installed."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.origin:
        raise StackError("needs pyspark beside onceproof; found none; install it: pip install onceproof")
    return Path(spec.origin).parent


def for_spark(component: str, version: str) -> list[str]:
    """Return the class paths that a component adds to the jars of that Spark version. Raises StackError if one of them
    does not exist for that version."""
    path = COMPONENTS / component / "jars.json"
    declared_here = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    names = [name for name in declared_here if name.startswith("spark-") and OF_VERSION not in name]
    for name in names:
        _named(name, version, spark_versions.versions()[version], scala="", hadoop="")
    return names


def jar_folders(version: SparkVersion | None = None) -> tuple[JarFolder, ...]:
    """Return what to fetch for the broker and for a Spark: the installed one without a `version`."""
    there = declared(version.name if version else "")
    return tuple(_jar_folder(name, version if name == "spark" else None) for name in ALWAYS if name in there)


def _jar_folder(name: str, version: SparkVersion | None = None) -> JarFolder:
    """`spark`, and more for Spark (`spark-delta`), come beside the jars that it ships. Whose jar is asked for alone is
    not left out: Ivy would leave out that jar too."""
    wanted = _coordinates(name, version)
    alone = {each.organisation for each in wanted if each.alone}
    left_out = tuple(each for each in SHIPPED if each not in alone)
    if name.partition("-")[0] != "spark":
        return JarFolder(name, wanted)
    return JarFolder(name, wanted, left_out, version.wheel if version else spark_home())


def coordinates(class_path: str, version: SparkVersion) -> list[str]:
    """Return the coordinates of that class path for that Spark version."""
    return list(map(str, _coordinates(class_path, version)))


def neighbours(class_path: str, version: SparkVersion | None = None) -> list[str]:
    """Return what of Spark's own is asked for by that name in another version than that of Spark, since Maven Central
    lacks it."""
    release = version.release if version else spark_versions.installed()
    found = _coordinates(class_path, version)
    return [str(each) for each in found if each.organisation == SPARKS and each.version != release]


def installed_spark(components: Iterable[str]) -> dict[str, Any]:
    """Return what a run with these components tells of the installed Spark: its `version`, and its `neighbours`, the
    jars of Spark's own in another version. Raises StackError as `for_spark` does."""
    paths = ["spark", *(path for each in components for path in for_spark(each, spark_versions.own()))]
    near = dict.fromkeys(each for path in paths for each in neighbours(path))
    return {"version": spark_versions.installed(), "neighbours": [*near]}


def declared(version: str = "") -> dict[str, list[str]]:
    """Return the coordinates that the components declare, by class path. Each component declares them in its folder's
    `jars.json`: data, since this module may not import components. `{line}`, `{spark}`, `{scala}` and `{hadoop}` in
    them are versions of the Spark that they are for: the installed one, or `version`. An entry for a version by name
    replaces the general one."""
    plain, own = dict[str, list[str]](), dict[str, list[str]]()
    version = version or spark_versions.own()
    for path in sorted(COMPONENTS.glob("*/jars.json")):
        for text, coordinates in json.loads(path.read_text(encoding="utf-8")).items():
            name, _, of = text.partition(OF_VERSION)
            if of in ("", version) and name != SIZES:
                (own if of else plain).setdefault(name, []).extend(coordinates)
    return {**plain, **own}


def _megabytes(class_path: str) -> int:
    """Return about how much is fetched for a class path, in MB; 0 where no component says it."""
    declared_sizes = (
        json.loads(path.read_text(encoding="utf-8")).get(SIZES, {}) for path in COMPONENTS.glob("*/jars.json")
    )
    return sum(sizes.get(class_path, 0) for sizes in declared_sizes)


def _coordinates(class_path: str, version: SparkVersion | None = None) -> tuple[Coordinate, ...]:
    home = version.wheel if version else spark_home()
    name, release = (version.name, version.release) if version else (spark_versions.own(), spark_versions.installed())
    more = {"scala": scala_version(home), "hadoop": shipped_version(home, "hadoop-client-api")}
    return tuple(map(coordinate, _named(class_path, name, release, **more)))


def _named(class_path: str, version: str, release: str, **more: str) -> list[str]:
    """Return the coordinates of a class path, each for that version of Spark. Raises StackError where one cannot be
    had."""
    versions = {"line": Published(version), "spark": Published(release)}
    out = list[str]()
    for text in declared(version)[class_path]:
        try:
            out.append(text.format(**versions, **more))
        except StackError as failure:
            name = re.split(r"[-_]\{", text.split(":")[1])[0]
            raise StackError(f"needs {name}: {failure}") from None
    if not out:
        raise StackError(f"has no jars for Spark {version}")
    return out


def pins() -> dict[str, str]:
    """Name of a jar -> the sha256 it must have."""
    lines = PINS.read_text(encoding="utf-8").splitlines() if PINS.exists() else []
    return {name: digest for digest, name in (line.split() for line in lines if line.strip())}


def verified(folder: Path) -> dict[Path, str]:
    """Return the jars of a fetched folder with their sha256, every byte read. Raises StackError when one differs."""
    pinned, out = pins(), {}
    for name, first in json.loads((folder / MANIFEST).read_text(encoding="utf-8")).items():
        # A jar that is not pinned (one for another version of Spark) is held to what it was when it was fetched.
        wanted, path = pinned.get(name, first), folder / name
        seen = digest(path) if path.is_file() else "no such file"
        if seen != wanted:
            raise StackError(
                f"{path} is not the jar it must be: wanted sha256 {wanted}, found {seen}; "
                f"remove the folder {folder} and run again with a network"
            )
        out[path] = wanted
    return out


def _jars(found: Mapping[str, dict[Path, str]]) -> Jars:
    broker, spark = (found.get(name, {}) for name in ALWAYS)
    lines = [f"{digest} {path.name}" for part in (broker, spark) for path, digest in part.items()]
    return Jars(tuple(broker), tuple(spark), hashlib.sha256("\n".join(lines).encode()).hexdigest())


def _ready(jars: JarFolder, found: java.Java | None) -> dict[Path, str]:
    folder = cache.folder("jars") / jars.key()
    if not (folder / MANIFEST).is_file():
        with locked(cache.folder("jars") / f".{jars.name}.lock", within_s=LOCK_S):
            if not (folder / MANIFEST).is_file():
                _fetch(jars, folder, found or java.find())
    return verified(folder)


def _fetch(jars: JarFolder, folder: Path, found: java.Java) -> None:
    with cache.filling(folder) as temporary:
        (temporary / "ivysettings.xml").write_text(_settings(), encoding="utf-8")
        (temporary / "ivy.xml").write_text(_module(jars), encoding="utf-8")
        # What Ivy has fetched it keeps there, and copies at the end.
        with fetch_progress.shown(f"the jars of {jars.name}", [cache.folder("ivy", jars.name)], _megabytes(jars.name)):
            _ivy(jars, temporary, found)
        if jars.home is not None:
            _drop_shipped(temporary, jars.home)
        digests = {path.name: digest(path) for path in sorted(temporary.glob("*.jar"))}
        (temporary / MANIFEST).write_text(json.dumps(digests, indent=1), encoding="utf-8")


def _ivy(jars: JarFolder, into: Path, found: java.Java) -> None:
    home = cache.folder("ivy", jars.name)
    tool = next(iter(sorted((spark_home() / "jars").glob("ivy-*.jar"))), None)
    if tool is None:
        raise StackError(f"needs the Ivy jar of pyspark; found none in {spark_home() / 'jars'}; reinstall pyspark")
    command = [str(found.executable), f"-Divy.default.ivy.user.dir={home}", "-jar", str(tool)]
    command += ["-settings", str(into / "ivysettings.xml"), "-cache", str(home), "-ivy", str(into / "ivy.xml")]
    # Without `bundle` scala-logging is left out, and the broker dies.
    command += ["-confs", "default", "-types", "jar", "bundle"]
    command += ["-retrieve", f"{into}/[artifact]-[revision](-[classifier]).[ext]"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=FETCH_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise StackError(f"fetching {_names(jars)} took over {FETCH_S:g} s; check the network, run again") from error
    if done.returncode != 0 or not any(into.glob("*.jar")):
        raise StackError(
            f"cannot fetch {_names(jars)} from Maven Central: {_complaint(done.stdout + done.stderr)}; "
            f"the jars are needed once: run again with a network, or set {MIRROR} to a mirror's root"
        )


def _drop_shipped(folder: Path, home: Path) -> None:
    """Remove the jars of which that pyspark has a copy of any version, such as spark-tags."""
    shipped = {_artifact(path) for path in (home / "jars").glob("*.jar")}
    for path in folder.glob("*.jar"):
        if _artifact(path) in shipped:
            path.unlink()


def _artifact(path: Path) -> str:
    return re.sub(r"-\d+\.\d.*$", "", path.stem)


def _complaint(output: str) -> str:
    """Return the cause in Ivy's long output, in its shortest form."""
    if re.search(r"^\s*Host \S+ not found|UnknownHost|ConnectException|unreachable", output, re.MULTILINE):
        return "the host cannot be reached"
    missing = re.findall(r":: ([\w.-]+)#([\w.-]+);([\w.-]+): not found", output)
    if missing:
        return "not found: " + ", ".join(dict.fromkeys(":".join(parts) for parts in missing))
    lines = [line.strip(" \t:") for line in output.splitlines() if re.search(r"exception|error|fail", line, re.I)]
    return lines[0] if lines else (output.strip().splitlines() or ["Ivy said nothing"])[-1]


def _settings() -> str:
    root = os.environ.get(MIRROR)
    where = f" root={quoteattr(root)}" if root else ""  # without one it is Maven Central
    return f"""<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"{where}/></resolvers>
</ivysettings>
"""


def _module(jars: JarFolder) -> str:
    wanted = list(map(_dependency, jars.wanted))
    left_out = [f"<exclude org={quoteattr(name)}/>" for name in jars.left_out]
    # What is asked for by name is taken in that version by all that depend on it.
    left_out += map(_override, jars.wanted)
    return f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="onceproof" module="{jars.name}"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>{"".join(wanted + left_out)}</dependencies>
</ivy-module>
"""


def _dependency(wanted: Coordinate) -> str:
    words = f"org={quoteattr(wanted.organisation)} name={quoteattr(wanted.name)} rev={quoteattr(wanted.version)}"
    if not wanted.alone:
        return f'<dependency {words} conf="default->default"/>'
    of = f" m:classifier={quoteattr(wanted.classifier)}" if wanted.classifier else ""
    jar = f'<artifact name={quoteattr(wanted.name)} type="jar" ext="jar"{of}/>'
    return f'<dependency {words} transitive="false" conf="default->default">{jar}</dependency>'


def _override(wanted: Coordinate) -> str:
    words = f"org={quoteattr(wanted.organisation)} module={quoteattr(wanted.name)} rev={quoteattr(wanted.version)}"
    return f"<override {words}/>"


def _names(jars: JarFolder) -> str:
    return " and ".join(map(str, jars.wanted))


def scala_version(home: Path) -> str:
    return ".".join(shipped_version(home, "scala-library").split(".")[:2])


def shipped_version(home: Path, name: str) -> str:
    """Return the version of a jar that pyspark ships. Raises StackError."""
    for path in (home / "jars").glob(f"{name}-*.jar"):
        return path.stem.removeprefix(f"{name}-")
    raise StackError(f"needs {name} of pyspark; found none in {home / 'jars'}; reinstall pyspark")


def _all() -> dict[str, Path]:
    """Return every jar that some component declares, by name, those of each Spark version too."""
    found = [path for name in declared() if name.partition("-")[0] != "spark" for path in fetched(name)]
    for name in spark_versions.versions():
        version = spark_versions.made(name) if spark_versions.is_other(name) else None
        for class_path in declared(name):
            if class_path.partition("-")[0] == "spark" and _there(class_path, name):
                found += fetched(class_path, version=version)
    return {path.name: path for path in found}


def _there(class_path: str, version: str) -> bool:
    """Return whether it can be had for that Spark version."""
    try:
        return bool(_named(class_path, version, spark_versions.versions()[version], scala="", hadoop=""))
    except StackError:
        return False


def main(arguments: list[str]) -> int:
    """Fetch, check, print; 0, or 4 with one line."""
    try:
        if "--pin" in arguments:
            print("\n".join(f"{digest(path)}  {name}" for name, path in sorted(_all().items())))
            return 0
        jars = resolve()
    except StackError as error:
        print(f"onceproof: {error}", file=sys.stderr)
        return error.exit_code
    for name, part in (("broker", jars.broker), ("spark", jars.spark)):
        print(f"{name}: {len(part)} jars{f' in {part[0].parent}' if part else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
