"""Takes secrets out of texts by their value, whatever dress they wear.

A secret is looked for plain and as JSON, URL, HTML, hex and base64 write it; in base64 also inside a longer text
(`user:password` of a header), where its letters depend on how far in it begins. Files are rewritten in
bounded memory. A leaf: it imports nothing of ours.
"""

from __future__ import annotations

import html
import json
import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

MARK = "[redacted]"
CHUNK = 1 << 20
SHORT = 6
"""Below this many bytes only the plain and escaped forms are sought: the base64 of a few letters is everywhere."""


class Redactor:
    """Knows the secrets of one run. Empty secrets are ignored."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if secret for form in _forms(secret)}
        # The longest first, or a secret that begins like another would leave its tail behind.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._longest = len(ordered[0]) if ordered else 0
        self._pattern = re.compile(b"|".join(re.escape(form) for form in ordered)) if ordered else None

    def text(self, text: str) -> str:
        """`text` without the secrets."""
        if self._pattern is None:
            return text
        clean = self._pattern.sub(MARK.encode(), text.encode("utf-8", "surrogatepass"))
        return clean.decode("utf-8", "surrogatepass")

    def data(self, value: Any) -> Any:
        """The same shape with every text in it, keys too, without the secrets; tuples become lists."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.data(key): self.data(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.data(item) for item in value]
        return value

    def file(self, path: Path) -> int:
        """Rewrite one file and return how many secrets it had. Whoever writes it must have ended.

        A file without secrets is not touched; links are not followed. Raises OSError."""
        if self._pattern is None or path.is_symlink() or not path.is_file():
            return 0
        half = path.with_name(f".{path.name}.{os.getpid()}.redacted")
        found = 0
        try:
            handle = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "wb") as out:
                for piece, count in self._pieces(path):
                    out.write(piece)
                    found += count
            if found:
                half.replace(path)
        finally:
            half.unlink(missing_ok=True)
        return found

    def _pieces(self, path: Path) -> Iterator[tuple[bytes, int]]:
        """The clean file in pieces; what could be the head of a secret is carried over to the next."""
        assert self._pattern is not None
        rest = b""
        with path.open("rb") as source:
            while chunk := source.read(CHUNK):
                piece, rest, count = self._split(rest + chunk)
                yield piece, count
        yield self._pattern.subn(MARK.encode(), rest)

    def _split(self, buffer: bytes) -> tuple[bytes, bytes, int]:
        assert self._pattern is not None
        cut = max(0, len(buffer) - self._longest + 1)
        out, count, done = [], 0, 0
        for match in self._pattern.finditer(buffer):
            if match.start() >= cut:
                break
            out += [buffer[done : match.start()], MARK.encode()]
            done, count = match.end(), count + 1
        cut = max(cut, done)
        return b"".join([*out, buffer[done:cut]]), buffer[cut:], count


def redact_file(path: Path, secrets: Iterable[str]) -> int:
    """Rewrite one file without the secrets; returns how many there were."""
    return Redactor(secrets).file(path)


def redact_folder(folder: Path, secrets: Iterable[str]) -> int:
    """Rewrite every file under `folder` without the secrets; returns how many there were."""
    redactor = Redactor(secrets)
    return sum(redactor.file(path) for path in sorted(folder.rglob("*")))


def _forms(secret: str) -> Iterator[bytes]:
    raw = secret.encode("utf-8", "surrogatepass")
    yield raw
    yield json.dumps(secret)[1:-1].encode()
    yield json.dumps(secret, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    yield html.escape(secret).encode("utf-8", "surrogatepass")
    # libpq's own quoting of a value in a connection string.
    yield raw.replace(b"\\", b"\\\\").replace(b"'", b"\\'")
    for quoted in (quote(raw), quote(raw, safe=""), quote_plus(raw)):
        yield quoted.encode()
        yield re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), quoted).encode()
    if len(raw) >= SHORT:
        yield raw.hex().encode()
        yield raw.hex().upper().encode()
        yield from _base64(raw)


def _base64(raw: bytes) -> Iterator[bytes]:
    """The letters that `raw` alone decides, for each of the three places in a group of bytes where it may begin."""
    for before in range(3):
        first = (before * 8 + 5) // 6
        last = (before + len(raw)) * 8 // 6
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(b"\0" * before + raw)[first:last]
