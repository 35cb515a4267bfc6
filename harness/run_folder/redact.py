"""Takes secrets out of texts by their value, whatever dress they wear.

A secret is searched for plain and as JSON, URL, HTML, hex and base64 write it; in base64 also inside a longer text
(`user:password` of a header), where its letters depend on how far in it begins. Files are rewritten in
bounded memory. A leaf: it imports nothing of ours.
"""

from __future__ import annotations

import errno
import html
import json
import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

MARK = "[redacted]"
FULL = (errno.ENOSPC, errno.EDQUOT)
SHORT = 6
"""Below this many bytes only the plain and escaped forms are sought: the base64 of a few letters is everywhere."""


class Redactor:
    """Knows the secrets of one run. Empty secrets are ignored."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if secret for form in _forms(secret)}
        # The longest first, or a secret that begins like another would leave its tail behind.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile(b"|".join(re.escape(form) for form in ordered)) if ordered else None

    def text(self, text: str) -> str:
        """`text` without the secrets."""
        if self._pattern is None:
            return text
        clean = self._pattern.sub(MARK.encode(), text.encode("utf-8", "surrogatepass"))
        return clean.decode("utf-8", "surrogatepass")

    def data(self, value: Any) -> Any:
        """Return the same shape with every text in it, keys too, without the secrets; tuples become lists."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.data(key): self.data(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.data(item) for item in value]
        return value

    def file(self, path: Path) -> int:
        """Rewrite one file and return how many secrets it had. The process that writes it must have ended.

        A file without secrets is not touched; links are not followed. On a full disk the secrets are blotted out
        where they stand. Raises OSError."""
        if self._pattern is None or path.is_symlink() or not path.is_file() or not path.stat().st_size:
            return 0
        with path.open("rb") as source, mmap(source.fileno(), 0, access=ACCESS_READ) as text:
            found = [match.span() for match in self._pattern.finditer(text)]
            if not found:
                return 0
            try:
                _rewrite(path, text, found)
                return len(found)
            except OSError as refused:
                if refused.errno not in FULL:
                    raise
        _blot(path, found)
        return len(found)


def _rewrite(path: Path, text: mmap, secrets: Sequence[tuple[int, int]]) -> None:
    half = path.with_name(f".{path.name}.{os.getpid()}.redacted")
    done = 0
    try:
        handle = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as out, memoryview(text) as view:
            for start, end in secrets:
                out.write(view[done:start])
                out.write(MARK.encode())
                done = end
            out.write(view[done:])
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)


def _blot(path: Path, secrets: Sequence[tuple[int, int]]) -> None:
    with path.open("r+b") as target:
        for start, end in secrets:
            target.seek(start)
            target.write(b"*" * (end - start))


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
    """Yield the letters that `raw` alone decides, for each of the three places in a group of bytes where it may
    begin."""
    for before in range(3):
        first = (before * 8 + 5) // 6
        last = (before + len(raw)) * 8 // 6
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(b"\0" * before + raw)[first:last]
