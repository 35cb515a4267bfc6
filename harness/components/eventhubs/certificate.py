"""The certificate of a server on loopback, made for one stack by the JRE's keytool: it trusts itself."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from harness.errors import StackError
from harness.hosts import service
from harness.hosts.ports import LOOPBACK
from harness.machine.java import Java
from harness.session.session import Session

MADE_S = 60.0
DAYS = 30
NAME = "broker"


class Certificate(NamedTuple):
    """`store` is a PKCS #12 file with key and certificate, `trusted` the certificate as PEM, for clients."""

    store: Path
    trusted: Path


def made(session: Session, java: Java, folder: Path, *, word: str, log: Path) -> Certificate:
    """Return one in `folder`, whose store has `word` as its password. Raises StackError."""
    tool = java.home / "bin" / "keytool"
    if not tool.is_file():
        raise StackError(f"asked for a certificate; {java.home} has no keytool. Install a whole Java 17 or 21 runtime")
    found = Certificate(folder / f"{NAME}.p12", folder / f"{NAME}.pem")
    secret = folder / "word"
    secret.touch(mode=0o600)
    secret.write_text(word)
    store = ["-alias", NAME, "-keystore", str(found.store), "-storepass:file", str(secret)]
    pair = ["-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-storetype", "PKCS12", "-validity", str(DAYS)]
    who = ["-dname", f"CN={LOOPBACK}", "-ext", f"san=ip:{LOOPBACK},dns:localhost", "-ext", "bc:c"]
    fast = [f"-J{flag}" for flag in service.JVM]
    for step in ([*pair, *who, *store], ["-exportcert", "-rfc", *store, "-file", str(found.trusted)]):
        service.finish(session, [str(tool), *fast, *step], name="keytool", log=log, within_s=MADE_S)
    secret.unlink()
    return found
