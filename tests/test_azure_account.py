"""The component `azure` at an address: how an account is asked, what a run has there, what Spark is told. No test here
has an account: what stands in for one is tests/storage_account.py."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli import main
from harness.components.azure import KIND as AZURE
from harness.components.azure.address import AzureThere
from harness.components.azure.blob import BlobService, emulator
from harness.components.azure.shared_key import Account, authorization, signed_text
from harness.errors import StackError, UsageError
from harness.load import load
from harness.machine import jars, java
from harness.remote import Entry
from harness.remote.http import Refused
from harness.remote.objects import ObjectFolder
from harness.resources import Resources, RunResources
from harness.scenario import Pipeline
from harness.spark import beside, driver_process
from harness.spark.beside import Users
from harness.spark.driver_process import SECRETS, Machine, settings
from harness.stacks import lasting
from harness.stacks.provision import Made
from harness.stacks.supported import refuse, unsupported
from tests.storage_account import CONTAINER, KEY, NAME, Failed, StorageAccount, in_its_place, service, standing

AZURES = Path(__file__).parents[1] / "scenarios" / "azure"
AT = f"https://{NAME}.blob.core.windows.net/{CONTAINER}"
LAKE = f"{CONTAINER}@{NAME}.dfs.core.windows.net"


@pytest.fixture
def account() -> StorageAccount:
    return StorageAccount()


@pytest.fixture
def there(account: StorageAccount, monkeypatch: pytest.MonkeyPatch) -> Iterator[AzureThere]:
    """A container at its address, for which `account` answers; Spark has no part in it."""
    monkeypatch.setattr("harness.machine.jars.fetched", lambda name: (Path("hadoop-azure.jar"),))
    with in_its_place(account, monkeypatch):
        yield AzureThere(AT)


# Signatures


@pytest.mark.parametrize(
    ("method", "path", "query", "headers", "text"),
    [
        (
            "GET",
            "/mycontainer",
            {"restype": "container", "comp": "metadata", "timeout": "20"},
            {"x-ms-version": "2015-02-21", "x-ms-date": "Fri, 26 Jun 2015 23:39:12 GMT"},
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n"
            "/myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20",
        ),
        (
            "GET",
            "/mycontainer",
            {"restype": "container", "comp": "list", "include": "snapshots"},
            {"x-ms-version": "2015-02-21", "x-ms-date": "Fri, 26 Jun 2015 23:39:12 GMT", "content-length": "0"},
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n"
            "/myaccount/mycontainer\ncomp:list\ninclude:snapshots\nrestype:container",
        ),
        (
            "PUT",
            "/mycontainer/a%20b",
            {"retainUncommittedData": "false", "position": "2"},
            {"x-ms-date": "now", "x-ms-blob-type": "BlockBlob", "content-length": "11", "date": "then"},
            "PUT\n\n\n11\n\n\n\n\n\n\n\n\nx-ms-blob-type:BlockBlob\nx-ms-date:now\n/myaccount/mycontainer/a%20b"
            "\nposition:2\nretainuncommitteddata:false",
        ),
    ],
    ids=["documented", "a listing", "a blob"],
)
def test_what_is_signed_is_what_microsoft_documents(
    method: str, path: str, query: dict[str, str], headers: dict[str, str], text: str
) -> None:
    assert signed_text("myaccount", method, path, query, headers) == text


def test_a_signature_is_the_mac_of_that_text() -> None:
    mac = base64.b64encode(hmac.new(base64.b64decode(KEY), b"text", hashlib.sha256).digest()).decode()
    assert authorization(Account(NAME, KEY), "text") == f"SharedKey {NAME}:{mac}"
    assert KEY not in repr(Account(NAME, KEY)) and KEY not in repr(service(1))


# Addresses


def test_the_address_of_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_KEY", raising=False)
    coded = KEY.replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")
    found = AzureThere(f"https://{NAME}:{coded}@{NAME}.dfs.core.windows.net/{CONTAINER}")
    assert (found.plain, found.container) == (f"https://{NAME}.dfs.core.windows.net/{CONTAINER}", CONTAINER)
    assert found.service == BlobService(Account(NAME, KEY), f"{NAME}.blob.core.windows.net")
    assert (found.service.url, found.service.secure) == (f"https://{NAME}.blob.core.windows.net", True)
    assert AzureThere(found.address).service == found.service
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    assert AzureThere(AT).service == found.service == AzureThere(AT.replace("//", f"//{NAME}@")).service
    zone = AzureThere(f"https://{NAME}.z12.blob.storage.azure.net/{CONTAINER}")
    assert zone.service.host == f"{NAME}.z12.blob.storage.azure.net"
    assert isinstance(AZURE.at(AT), AzureThere)


@pytest.mark.parametrize(
    "given",
    [
        f"{NAME}/{CONTAINER}",
        f"http://{NAME}.blob.core.windows.net/{CONTAINER}",
        f"https://{NAME}.blob.core.windows.net/",
        f"https://{NAME}.blob.core.windows.net/{CONTAINER}/folder",
        f"https://{NAME}.blob.core.windows.net/{CONTAINER}?sv=1",
        f"https://{NAME}.blob.core.windows.net/My_Container",
        f"https://{NAME}.blob.core.windows.net/my--container",
        f"https://{NAME}.blob.core.windows.net:8443/{CONTAINER}",
        f"https://{NAME}.file.core.windows.net/{CONTAINER}",
        f"https://another:c2VjcmV0@{NAME}.blob.core.windows.net/{CONTAINER}",
        f"https://{NAME}:s3cr*t@{NAME}.blob.core.windows.net/{CONTAINER}",
        f"https://{NAME}:c2Vj/mV0@{NAME}.blob.core.windows.net/{CONTAINER}",
        f"abfss://{CONTAINER}@{NAME}.dfs.core.windows.net/",
    ],
)
def test_the_address_of_a_container_that_is_none(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    with pytest.raises(UsageError, match="--at azure=… must be a container's address as https://") as refused:
        AzureThere(given)
    assert all(secret not in str(refused.value) for secret in (KEY, "c2Vj", "s3cr"))


@pytest.mark.parametrize("key", ["", "no base64!"])
def test_an_address_without_a_key_says_where_one_may_be(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_KEY", key)
    with pytest.raises(UsageError, match="the key is taken from AZURE_STORAGE_KEY"):
        AzureThere(AT)


# Asking


@pytest.mark.parametrize(
    ("hierarchical", "kind", "spark"),
    [
        (True, "hierarchical namespace", f"abfs://{LAKE}"),
        (False, "flat namespace", f"wasb://{CONTAINER}@{NAME}.blob.core.windows.net"),
    ],
)
def test_what_kind_of_account_it_is_decides_how_spark_reaches_it(
    there: AzureThere, account: StorageAccount, hierarchical: bool, kind: str, spark: str
) -> None:
    account.hierarchical = hierarchical
    assert there.describe() == {"at": AT, "account": kind, "spark": spark}
    # By TLS, as every account that has an address is asked.
    there.service = replace(there.service, secure=True)
    assert there._hierarchical is hierarchical
    assert there._root == spark.replace("://", "s://")


@pytest.mark.parametrize("hierarchical", [True, False])
def test_what_is_put_is_listed_read_and_gone_with_its_run(
    there: AzureThere, account: StorageAccount, hierarchical: bool
) -> None:
    account.hierarchical = hierarchical
    account.there |= {"others": None, "others/x": b"theirs", "onceproof-r11/plain/x": b"another run's"}
    before = dict(account.there)
    given = there.provide("r1", {"": {"checkpoint": True}, "input": {}})
    prefix: ObjectFolder = given[""].at
    commits = ("checkpoint/commits/.0.a b.tmp", "checkpoint/commits/0")
    for place in ("checkpoint/offsets/0", *commits, "n/1", "n/2", "n/3", "n/4"):
        prefix.write(place, place.encode())
    given["input"].at.write("0.txt", b"")
    assert prefix.read("checkpoint/commits/.0.a b.tmp") == b"checkpoint/commits/.0.a b.tmp"
    assert prefix.read("nothing") is None and prefix.entries("nothing") == []
    assert prefix.entries("") == [Entry("checkpoint", folder=True), Entry("n", folder=True)]
    # More than one page of it.
    assert [(each.name, each.size) for each in prefix.entries("n")] == [(str(n), 3) for n in range(1, 5)]
    assert [entry.name for entry in prefix.below("checkpoint").entries("commits")] == [".0.a b.tmp", "0"]
    stamps = {each.name: each.stamp for each in prefix.entries("n")}
    prefix.write("n/1", b"other")
    assert {each.name for each in prefix.entries("n") if each.stamp != stamps[each.name]} == {"1"}
    prefix.delete("n")
    prefix.delete("n")
    assert prefix.entries("") == [Entry("checkpoint", folder=True)]
    # One part after the other, and once more.
    there.drop("r1", [""])
    assert [entry.name for entry in given["input"].at.entries("")] == ["0.txt"]
    there.drop("r1", ["", "input"])
    there.drop("r1", ["", "input"])
    assert account.there == before


def test_what_a_killed_harness_has_left_there_is_dropped(
    there: AzureThere, account: StorageAccount, tmp_path: Path
) -> None:
    there.provide("r1", {"": {}})[""].at.write("a/b", b"1")
    made = Made(run_id="r1", labels=("azure",), folder=tmp_path / "r1", root=tmp_path)
    told = lasting.remembered({"azure": ("at", there.address)}, [made])
    (tmp_path / "made.json").write_text(json.dumps(told, default=str))
    assert lasting.main(tmp_path / "made.json") == 0
    assert account.there == {}


def test_a_run_has_the_words_that_its_scenario_uses(there: AzureThere) -> None:
    given = there.provide("r1", {"": {"checkpoint": True}})[""]
    base = f"abfs://{LAKE}/onceproof-r1/plain"
    assert given.filled() == {
        "azure.path": base,
        "azure.jars": "hadoop-azure.jar",
        "azure.checkpoint": f"{base}/checkpoint",
        "checkpoint": f"{base}/checkpoint",
    }
    assert set(AZURE.gives) <= set(given.placeholders) and given.shared
    assert AZURE.checkpoints(given).url == f"{base}/checkpoint"
    more = there.provide("r1", {"input": {}})["input"].filled()
    assert more["azure.input.path"] == f"abfs://{LAKE}/onceproof-r1/input"


def test_no_request_can_be_held_there(there: AzureThere) -> None:
    assert AZURE.commits(there.provide("r1", {"": {"checkpoint": True}})[""]) is None


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (Failed(403, "AuthenticationFailed"), "status 403, AuthenticationFailed The server says Auth.*; the key is"),
        (Failed(403, "AuthorizationFailure"), "status 403, AuthorizationFailure .*; allow this machine's address"),
        (Failed(403, "KeyBasedAuthenticationNotPermitted"), "status 403, .*; allow access by key"),
        (Failed(409, "AccountIsDisabled"), r"status 409, AccountIsDisabled The server says AccountIsDisabled\.$"),
    ],
    ids=lambda given: given.kind if isinstance(given, Failed) else "",
)
def test_what_is_refused_is_one_clear_error(
    there: AzureThere, account: StorageAccount, refusal: Failed, said: str
) -> None:
    account.refuses = refusal
    asked = "asked Azure Storage at http://.* to say what kind of account it is"
    with pytest.raises(UsageError, match=f"{asked}; it said: {said}") as refused:
        there.describe()
    assert "\n" not in str(refused.value) and KEY not in str(refused.value)


def test_a_wrong_key_is_one_clear_error(there: AzureThere) -> None:
    there.service = replace(there.service, account=Account(NAME, "b3RoZXI="))
    with (
        closing(there),
        pytest.raises(UsageError, match=r"AuthenticationFailed .*; the key is another account"),
    ):
        there.describe()


def test_a_container_that_is_not_there_is_one_clear_error(there: AzureThere) -> None:
    there.container = "another"
    with pytest.raises(UsageError, match=r"to list another/onceproof-; .*ContainerNotFound .*; make the container"):
        there.describe()
    prefix = there._folder("r1", "")
    # Nor is it taken for one without the blob.
    with pytest.raises(Refused, match="to give another/onceproof-r1/plain/x; it said: status 404, ContainerNotFound"):
        prefix.read("x")


def test_a_service_that_fails_is_no_mistake_of_the_users(there: AzureThere, account: StorageAccount) -> None:
    account.refuses = Failed(503, "ServerBusy")
    with pytest.raises(StackError, match="it could not: status 503, ServerBusy The server says ServerBusy"):
        there.describe()


def test_an_account_that_nobody_answers_for_is_said() -> None:
    nobody = replace(service(1), host="127.0.0.1")
    with pytest.raises(StackError, match=r"at http://127\.0\.0\.1:1/myaccount to say .*; saw .*refused$"):
        nobody.hierarchical()
    with standing(StorageAccount()) as port:
        deaf = replace(service(port), secure=True)
        with pytest.raises(StackError, match=r"asked Azure Storage at https://.* to say .*; saw .*SSL"):
            deaf.hierarchical()


def test_another_server_than_azure_s_is_said(there: AzureThere, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http.client.HTTPResponse, "getheaders", lambda found: [])
    with pytest.raises(StackError, match="to say what kind of account it is; its answer has no x-ms-is-hns-enabled"):
        there.describe()


def test_a_server_of_ours_is_named_with_its_log() -> None:
    with pytest.raises(StackError, match=r"asked Azurite at http://.*:1/devstoreaccount1 to .*See logs/azure\.log"):
        emulator(1).containers()


# What Spark is told


def own(tmp_path: Path, part: Resources) -> RunResources:
    return RunResources(
        run_id="r1",
        parts={"azure": part},
        spark_master="spark://127.0.0.1:1",
        spark_home=tmp_path,
        folder=tmp_path,
        checkpoint=tmp_path / "checkpoint",
    )


def machine(tmp_path: Path) -> Machine:
    return Machine(
        java=java.Java(tmp_path, tmp_path, 17, ""),
        jars=jars.Jars((), (Path("connector.jar"),), ""),
        flags=(),
        shipped=tmp_path / "modules.zip",
    )


def started(given: RunResources, pipeline: Pipeline, machine: Machine) -> tuple[list[str], dict[str, str]]:
    """The command and the environment of a driver."""
    asked: list[tuple[list[str], dict[str, str]]] = []
    session: Any = SimpleNamespace(spawn=lambda command, *, env, **rest: asked.append((command, env)))
    driver_process.launch(session, given, pipeline, machine, number=1, log=given.folder / "log")
    ((words, env),) = asked
    return words, env


@pytest.mark.parametrize(
    ("hierarchical", "keys"),
    [
        (True, f"spark.hadoop.fs.azure.account.key.{NAME}.dfs.core.windows.net"),
        (False, f"spark.hadoop.fs.azure.account.key.{NAME}.blob.core.windows.net"),
    ],
)
def test_the_key_reaches_spark_by_a_file_and_by_no_command_line(
    there: AzureThere, account: StorageAccount, tmp_path: Path, hierarchical: bool, keys: str
) -> None:
    account.hierarchical = hierarchical
    part = there.provide("r1", {"": {}})[""]
    auth = f"spark.hadoop.fs.azure.account.auth.type.{NAME}.dfs.core.windows.net"
    assert part.conf.get(auth) == ("SharedKey" if hierarchical else None)
    assert part.secrets == (KEY,)
    given, pipeline = own(tmp_path, part), Pipeline(entry="p.py", conf={"spark.jars": "mine.jar"})
    words, env = started(given, pipeline, machine(tmp_path))
    assert KEY not in " ".join(words)
    # What the user has set is the user's.
    assert {name for name, value in env.items() if KEY in value} == {"AZURE_STORAGE_KEY"}
    file = Path(words[words.index("--properties-file") + 1])
    assert (file, file.stat().st_mode & 0o777) == (tmp_path / SECRETS, 0o600)
    assert file.read_text() == f"{keys}={KEY}\n"
    # What goes into run.json and the page.
    assert KEY not in str(settings(given, pipeline, machine(tmp_path), 1, Users(pipeline=pipeline.conf)))


def test_a_run_without_secrets_has_no_such_file(tmp_path: Path) -> None:
    given = own(tmp_path, Resources(label="azure", at=None))
    words, _ = started(given, Pipeline(entry="p.py"), machine(tmp_path))
    assert "--properties-file" not in words and not (tmp_path / SECRETS).exists()


def test_jars_of_a_pipeline_come_beside_those_that_executors_fetch(tmp_path: Path) -> None:
    given = own(tmp_path, Resources(label="azure", at=None))
    words, _ = started(given, Pipeline(entry="p.py", conf={"spark.jars": "a.jar,b.jar"}), machine(tmp_path))
    assert "spark.jars=connector.jar,a.jar,b.jar" in words
    here = replace(machine(tmp_path), shipped=None)
    words, _ = started(given, Pipeline(entry="p.py", conf={"spark.jars": "a.jar"}), here)
    assert "spark.jars=a.jar" in words


def test_a_value_of_such_a_file_is_read_as_it_was() -> None:
    assert beside.properties({"k": "a\\b\nc=d"}) == "k=a\\\\b\\nc=d\n"


# What is refused, and what is not run


def test_the_scenarios_of_azure_run_there_unless_they_hold_a_request() -> None:
    scenarios = [load(path) for path in sorted(AZURES.glob("*.yaml"))]
    lacking = {Path(each.path).stem: unsupported(each, "external") for each in scenarios}
    held = {name for name in lacking if name.endswith("_delete_held")}
    assert {name for name, words in lacking.items() if words} == held
    for each in scenarios:
        if Path(each.path).stem in held:
            with pytest.raises(UsageError, match=r"no request can be held .*`; the stack `external` does not"):
                refuse([each], "external")


def said(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, [*words])
    return done.exit_code, done.output


@pytest.mark.subprocess
def test_scenarios_without_an_account_are_named_as_not_run(tmp_path: Path) -> None:
    one = str(AZURES / "checkpoint_upsert_mid_batch.yaml")
    needs = "--at azure=ADDRESS, --at kafka=ADDRESS, --at postgres=ADDRESS"
    code, output = said("validate", one, "--stack", "external")
    assert code == 0 and f"OK: 1 scenario\nnot run without an address: {one}: " in output
    assert sorted(output.strip().rpartition(f"{one}: ")[2].split(", ")) == needs.split(", ")
    assert said("validate", one) == (0, "OK: 1 scenario\n")
    kafka = ["--at", "kafka=127.0.0.1:1", "--at", "postgres=postgresql://a@127.0.0.1:1/b"]
    there = ["--stack", "external", "--spark-master", "spark://127.0.0.1:1", *kafka, "--reports", str(tmp_path)]
    code, output = said("run", one, *there)
    assert (code, "it also needs --at azure=ADDRESS\n" in output) == (2, True)
    assert f"not run without an address: {one}: --at azure=ADDRESS\n" in output
    code, output = said("run", one, *there, "--skip-unsupported")
    assert (code, "it also needs --at azure=ADDRESS\n" in output) == (2, True)
    both = [one, str(AZURES.parent / "proving" / "upsert_driver_killed_mid_batch.yaml")]
    code, output = said("run", *both, *there, "--skip-unsupported")
    # The other one is tried, and nobody answers for its broker.
    assert (code, f"not run without an address: {one}: --at azure=ADDRESS\n" in output) == (4, True)
    assert "asked for Kafka at 127.0.0.1:1; it does not answer" in output


def test_doctor_names_an_account_that_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    (check,) = [each for each in AZURE.machine_checks if each.name == "azure account"]
    monkeypatch.delenv("AZURE_STORAGE_KEY", raising=False)
    with pytest.raises(StackError, match=r"no AZURE_STORAGE_KEY: .* on Azurite .* alone, and not on an account"):
        check.see()
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    assert check.optional and KEY not in check.see() and "the account is not asked here" in check.see()
