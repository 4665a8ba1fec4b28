"""One hub, two tenants with everything, and every kind of caller."""

import json
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from anyio.from_thread import start_blocking_portal

from lab import ROOT
from lab.agents import Echo
from lab.callers import bearer
from lab.forked import run_forked
from lab.hub_process import HubProcess
from lab.hub_storage import HubStorage, hub_env
from tests.tenancy.callers import CALLERS, Caller, those_who_may
from tests.tenancy.changes import Changes, noting_changes
from tests.tenancy.rights import FURTHER, WEBHOOK, May, Rule
from tests.tenancy.rules import RULES
from tests.tenancy.web import Answer, Web

WITHIN_S = 60
SEEDED_WITHIN_S = 120
FURTHER_SPARES = 12
FURTHER_SETS = 40
OPTIONS = {"SIGNIN_RATE_PER_MINUTE": 1_000_000, "TOKENS_PER_OWNER": 1_000}
ABSENT = {
    "public_id": "00000000-0000-4000-8000-000000000000",
    "spare_id": "00000000-0000-4000-8000-000000000000",
    **dict.fromkeys(("venue_id", "api_key_id", "booking_id", "order_id"), "00000000-0000-4000-8000-000000000000"),
    "request_id": "r-0",
    "slug": "unknown",
    "peer": "olga/unknown",
    "prefix": "0" * 16,
    "key_id": "key-0",
    "agent_name": "seat-unknown",
    "letter_id": 999_999_999,
    **dict.fromkeys(("ask_id", "chat_id", "group_slug", "private slug"), "unknown"),
    **dict.fromkeys(("thread_id", "task", "step", "artifact"), "00000000-0000-4000-8000-000000000000"),
    **dict.fromkeys(
        (
            "set_id",
            "question_id",
            "run_id",
            "group_invitation_id",
            "remote_id",
            "agent_id",
            "token_id",
            "credential_id",
            "failure_id",
            "file_id",
            "webhook_id",
            "delivery_id",
            "proposal_id",
            "letter_id",
            "share_id",
        ),
        999_999_999,
    ),
}
Names = dict[str, Any]


@dataclass
class World:
    """`main` is olga's, online; `gone` belongs to a suspended user; `other` to stan. Names by placeholder."""

    hub: HubProcess
    tokens: dict[str, str]
    main: Names
    gone: Names
    other: Names
    spares: list[Names]
    user_ids: dict[str, int]
    callers: dict[str, Caller]
    web: Web = field(init=False)
    agent: Echo = field(init=False)
    changes: Changes = field(init=False)

    def __post_init__(self) -> None:
        self.web = Web(self.hub.url, WITHIN_S)

    @property
    def operators(self) -> list[str]:
        """The tokens of the callers that may sign in, by their name in `tokens`."""
        return [one.token for one in self.callers.values() if one.is_live and one.kind != "channel"]

    @property
    def refused(self) -> list[str]:
        """The tokens that no surface for people takes, by their name in `tokens`."""
        return [one.token for one in self.callers.values() if one.token not in [*self.operators, "olga channel"]]

    def calling(self, *names: str) -> list[str]:
        """Of callers by their name in `tokens`, those who call on this home."""
        tokens = {one.token for one in self.callers.values()}
        return [name for name in names if name in tokens]

    @property
    def absent(self) -> Names:
        """The names of the main set, without rows behind them."""
        return self.main | ABSENT

    def spare(self, name: str) -> Names:
        """A set of olga's rows that no test used before, with what the rule is about."""
        wanted = needed(name)
        index = next(index for index, one in enumerate(self.spares) if one["has"] == wanted)
        return self.spares.pop(index)

    def call(self, name: str, rule: Rule, caller: str, names: Names) -> Answer:
        """The request of a rule by a caller, about the objects named."""
        method, _, path = name.partition(" ")
        names, token = names | rule.names, self.tokens.get(caller)
        url = fill(path + rule.query, names)
        if method == "PAGE":
            return self.web.get(url, headers={"Cookie": f"cw_session={token}"} if token else {})
        headers = bearer(token) if token else {}
        if rule.form:
            form = {"file": ("a.txt", b"bytes", "text/plain")}
            data = {"sessionId": names["public_id"]} if url.endswith("/channel/files") else None
            return self.web.post(url, headers=headers, files=form, data=data)
        body = fill(rule.body, names)
        return self.web.request(method, url, headers=headers, **({} if body is None else {"json": body}))


def needed(name: str) -> str:
    """What a set of rows has besides those that all sets have, for a rule."""
    if name in RULES and RULES[name].may is May.BY_HAND:
        return FURTHER
    return WEBHOOK if "webhook_id" in name else ""


def fill(wanted: Any, names: Names) -> Any:
    """A path or body with the names filled in."""
    if isinstance(wanted, str):
        for name, value in names.items():
            wanted = wanted.replace(f"{{{name}}}", str(value))
        return wanted
    if isinstance(wanted, dict):
        return {key: fill(value, names) for key, value in wanted.items()}
    if isinstance(wanted, list):
        return [fill(value, names) for value in wanted]
    return wanted


@contextmanager
def world(home: HubStorage, callers: Iterable[str] = CALLERS, *, processes: int = 1) -> Iterator[World]:
    """A hub with everything in it, until the block ends. `callers`: who calls, of `CALLERS`."""
    # Not the journal: there a refused call for a task leaves the time at which its process looked for the task.
    store = "redis" if home.is_grown else "memory"
    hub = HubProcess.start(home, processes=processes, TASK_STORE=store, **OPTIONS)
    try:
        made = World(hub, **_seed(hub, set(callers)), callers={name: CALLERS[name] for name in callers})
        with closing(made.web), noting_changes(hub) as made.changes, _online(made):
            yield made
        hub.check_running()
    finally:
        hub.stop()


def _seed(hub: HubProcess, callers: set[str]) -> dict[str, Any]:
    """All rows, and a spare set for each caller of each rule that writes; a webhook where one is needed."""
    writing = {name: rule for name, rule in RULES.items() if rule.writes}
    spares = [needed(name) for name, rule in writing.items() for _ in callers & set(those_who_may(rule))]
    spares += [""] * FURTHER_SPARES + [FURTHER] * FURTHER_SETS
    env = hub_env(hub._env) | {"DJANGO_SETTINGS_MODULE": "hub.settings"}
    done = run_forked(["-m", "tests.tenancy.rows", json.dumps(spares)], env, folder=ROOT, within_s=SEEDED_WITHIN_S)
    assert done.returncode == 0, done.stderr
    made: dict[str, Any] = json.loads(done.stdout)
    return made


@contextmanager
def _online(made: World) -> Iterator[None]:
    """Olga's main session answers, from a thread of its own."""
    agent = Echo(
        made.hub.url, made.tokens["olga channel"], session_id=made.main["public_id"], cwd="/canary-viewer"
    )
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(agent) as made.agent:
        assert made.agent.session_id == made.main["public_id"]
        yield
