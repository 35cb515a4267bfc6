"""What ResourceManager says over HTTP: of the node, of an application and of its attempts; and the end of one. What
NodeManager says of an application.

The answers have other shapes than Hadoop's pages describe, since the one jar that holds its daemons brings another
writer of JSON. The application itself (`/apps/ID`) is of no use: its final status is not in it. So it is searched for,
by its tag, among those that ended well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode

from harness.errors import StackError
from harness.remote.http import json_page

FINISHED = "FINISHED"
"""The state of an application whose last attempt has reported how it ended, well or not."""
OVER = (FINISHED, "FAILED", "KILLED")
EMPTIED = ("APPLICATION_RESOURCES_CLEANINGUP", "FINISHED")
"""The states of an application in NodeManager once all of its containers there have ended."""
NOT_FOUND = 404
EXIT_CODE = re.compile(r"exitCode: (-?\d+)")


@dataclass(frozen=True)
class Manager:
    """ResourceManager's page at `host:port`."""

    address: str

    def answers(self) -> bool:
        """Return whether it answers, with a node or without. It does so some moments before it has recovered its
        applications."""
        return self.ask("/nodes") is not None

    def node_since_ms(self) -> int:
        """Return when its running node last reported its health, in milliseconds since 1970; 0 without a node."""
        nodes = (self.ask("/nodes") or {}).get("nodes") or ()
        return max((int(each["lastHealthUpdate"]) for each in nodes if each["state"] == "RUNNING"), default=0)

    def attempts(self, application: str) -> dict[int, str] | None:
        """Return the state of each that it has begun, by number, from 1; None while it does not answer."""
        found = self.ask(f"/apps/{application}/appattempts")
        if found is None:
            return None
        return {int(each["attemptId"]): str(each["appAttemptState"]) for each in found.get("attempts") or ()}

    def over(self, application: str) -> str:
        """In which state an application has ended; empty while it has not, or there is no answer."""
        state = str((self.ask(f"/apps/{application}/state") or {}).get("state", ""))
        return state if state in OVER else ""

    def ended_well(self, tag: str) -> bool | None:
        """Return whether the one application with that tag says that it succeeded; None while there is no answer."""
        found = self.ask(f"/apps?{urlencode({'finalStatus': 'SUCCEEDED', 'applicationTags': tag})}")
        if found is None:
            return None
        # A list, or one below `app`, as the serializer of that version has it.
        apps = found.get("apps")
        return bool(apps.get("app") if isinstance(apps, dict) else apps)

    def exit_status(self, application: str, number: int) -> int | None:
        """Return the exit status of an attempt's container; None while YARN has not said it, and for good if the
        attempt reported its end itself."""
        found = EXIT_CODE.search(self.diagnostics(application, number))
        return int(found[1]) if found else None

    def diagnostics(self, application: str, number: int) -> str:
        """Return what YARN says of an attempt: why it waits, how it ended; empty where that is nothing, or there is no
        answer."""
        name = f"{application.replace('application', 'appattempt')}_{number:06}"
        found = self.ask(f"/apps/{application}/appattempts/{name}") or {}
        return str(found.get("diagnosticsInfo") or "")

    def end(self, application: str) -> None:
        """Have it end for good. Raises StackError if YARN does not answer."""
        try:
            self._request(f"/apps/{application}/state", {"state": "KILLED"})
        except (OSError, ValueError) as failure:
            raise StackError(f"asked YARN to end {application}; it does not answer: {failure}") from failure

    def ask(self, path: str) -> dict[str, Any] | None:
        """Return its answer; None if it does not answer."""
        try:
            return self._request(path)
        except (OSError, ValueError):
            return None

    def _request(self, path: str, body: dict[str, str] | None = None) -> dict[str, Any]:
        return json_page(f"http://{self.address}/ws/v1/cluster{path}", body)


@dataclass(frozen=True)
class Node:
    """NodeManager's page at `host:port`."""

    address: str

    def done(self, application: str) -> bool:
        """Return whether it has no container of that application any more, and begins none. False while it does not
        answer."""
        try:
            found = json_page(f"http://{self.address}/ws/v1/node/apps/{application}")
        except HTTPError as failure:
            # One that came back without its containers knows no application either.
            return failure.code == NOT_FOUND
        except (OSError, ValueError):
            return False
        return str(found.get("state")) in EMPTIED
