"""The fault `restart redis`: SIGKILL to the server, which is started again at once on the data that it left."""

from __future__ import annotations

from harness.context import Reached, RunContext
from harness.faults.base import Injection, NoOptions, Proof
from harness.kinds import About, Refusals
from harness.scenario import Fault, Impact, Step, Trigger
from harness.stack import Means
from harness.triggers.base import Planned
from onceproof_redis.server import RedisProcess


class RestartRedis:
    """Whoever writes at that moment loses the connection, and does not know what was done."""

    about = About(
        name="restart redis",
        summary="SIGKILL to the Redis of the stack, which is started again at once",
        example="{when: {redis_rows: 150}, do: restart redis}",
        options=NoOptions,
    )
    components = ("redis",)
    impact = Impact.NONE
    needs = frozenset({Means.RESTART_COMPONENTS})

    def refusals(self, fault: Fault, trigger: Trigger | None, planned: Planned) -> Refusals:
        """At any moment."""
        return iter(())

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        """Kill it, and wait until the next one answers."""
        server = run.stack.servers.get("redis")
        if not isinstance(server, RedisProcess):
            return Injection(signalled={}, note="the stack has no Redis of its own")
        victim = server.pid
        server.stop()
        server.start()
        return Injection(signalled={f"redis {victim}": "gone after SIGKILL"}, proof=Proof.IN_PROGRESS)


KIND = RestartRedis()
