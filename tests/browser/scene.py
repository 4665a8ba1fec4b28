"""A hub on which something is going on: agents in every state, people who ask, watch and are told."""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from lab.agents import Chunker, Echo, Held, TaskPeer, publish
from lab.callers import Json, send
from lab.channel_agent import ChannelAgent
from lab.hub_process import HubProcess
from lab.hub_storage import HubStorage, manage
from lab.pictures import png
from lab.receivers import receiving
from lab.waiting import eventually
from tests.browser.sessions import api, request_permission, share, tail
from tests.remote.servers import Changing, offering, raw_server
from tests.v1.caller import Caller

OPTIONS = {
    "DEV_LOGIN": 1,
    "TEST_TIME_SCALE": 1,
    "REMOTE_ALLOW_PRIVATE": 1,
    "WEBHOOK_ALLOW_PRIVATE": 1,
    "REPLY_WAIT_S": 1800,
}
REPLY = [
    "A lifetime is how long ",
    "a reference is good: ",
    "the compiler checks that nothing uses it ",
    "after that.",
]
RUST: Json = {
    "name": "Rust expert",
    "tagline": "Answers Rust questions, borrow checker included",
    "description": "Ask about **ownership** and lifetimes.\n\n- reads no files\n- cites *The Book*",
    "claudeMd": "Answer in three sentences. Show code only when asked.",
    "suggestedPrompts": ["what's a lifetime?", "why does the borrow checker refuse my loop?"],
}
NOTES: Json = {
    "name": "Release notes",
    "tagline": "Knows what changed in which version, and why",
    "isolated": False,
    "dailyCostLimitUsd": 0.1,
}
USED: Json = {"inputTokens": 1840, "outputTokens": 412, "costUsd": 0.0429}
LIBRARIAN: Json = {"name": "Librarian", "tagline": "Reads for you, one reader at a time"}
SPENT: Json = {"name": "Oracle", "tagline": "A question a day", "dailyBudgetQueries": 1}
ON_CALL: Json = {
    "name": "On call",
    "tagline": "Reads the runbook so that you do not have to",
    "dailyBudgetQueries": 20,
}
PLANNER: Json = {
    "name": "Release planner",
    "tagline": "Says what is left before a release",
    "isolated": False,
}
PLAN = ["Before 2.0: ", "close two issues, ", "write the notes, ", "and tag the commit."]
ANALYST: Json = {"name": "Analyst", "tagline": "Draws what the numbers say"}
QUESTIONS = [
    ("rust-expert", "What is a lifetime in Rust?", "asker"),
    ("release-notes", "What changed in 2.0?", "asker"),
    ("rust-expert", "Why does the borrow checker refuse two mutable references?", "bob"),
    ("rust-expert", "Is `Rc` safe across threads?", "bob"),
    ("release-notes", "Is 1.9 still supported?", "alice"),
    ("oracle", "Will it rain?", "asker"),
    ("oracle", "And tomorrow?", "asker"),
]


# What the asker asks in one conversation, and the answers.
CONVERSATION = {
    "We run 1.9. What do we have to do before 2.0?": (
        "Three things, in this order:\n\n1. **Export the old audit**: 2.0 reads only the new form.\n"
        "2. Set `RETENTION_DAYS`; without it nothing is deleted.\n3. Run `migrate` while the hub is stopped."
    ),
    "How long does the migration take with two million rows?": (
        "About four minutes on SQLite, one on PostgreSQL:\n\n|Rows|SQLite|PostgreSQL|\n|--:|--:|--:|\n"
        "|100,000|12 s|3 s|\n|2,000,000|4 min|1 min|\n\nReaders are not blocked meanwhile."
    ),
    "And if it fails in the middle?": (
        "Nothing is lost: each step is one transaction.\n\n```sh\nmanage.py migrate --check  # what is left\n"
        "manage.py migrate\n```\n\nRun it again; it goes on where it ended."
    ),
}


# The steps of a `TaskPeer` that sends one of each kind, and then asks back.
EVERYTHING = " | ".join(
    [
        "note Reading sales.csv",
        "say ## Sales by region\n\nThe **north** leads, see `sales.csv`:\n\n```\nmake report YEAR=2026\n```\n\n",
        'say ```python\ndef report(year=2026):  # sales\n    return read("sales.csv")\n```\n\n',
        "say - [x] read\n- [ ] plan\n\n",
        "say |Region|Q1|\n|:--|--:|\n|north|12|\n|south|8|",
        f"image chart {b64encode(png(240)).decode()}",
        'data rows [{"region": "north", "q1": 12}, {"region": "south", "q1": 8}]',
        'data settings {"year": 2026, "final": false}',
        "raw sales region,q1",
        "url whole-report https://example.org/report",
        "ask Which **quarter** comes next?",
    ]
)


class Notes(Echo):
    """Answers the questions of the conversation, and echoes others."""

    async def answer(self, prompt: Json) -> None:
        if prompt["text"] in CONVERSATION:
            await self.reply(prompt["chatId"], CONVERSATION[prompt["text"]])  # without costs, which have a limit
        else:
            await super().answer(prompt)


class Analyst(TaskPeer):
    """Answers each question with everything that an agent can send."""

    async def answer(self, prompt: Json) -> None:
        await super().answer(prompt | {"text": EVERYTHING})


class Planner(Chunker):
    """Uses tools, asks another agent, and answers in pieces."""

    async def answer(self, prompt: Json) -> None:
        await self._use("Read", 0.2, file_path="docs/releasing.md")
        chat_id, peer = prompt["chatId"], "owner/release-notes"
        asked = {"correlationId": "plan-1", "peer": peer, "prompt": "What changed in 2.0?", "chatId": chat_id}
        await self.send(type="route_request", mode="ask", **asked)
        await self.heard("route_response")
        await self._use("Bash", 0.5, command="git log --oneline v1.9..HEAD")
        for piece in self.pieces:
            await self.chunk(chat_id, piece)
            await asyncio.sleep(0.1)
        await self.chunk(chat_id, "", done=True)

    async def _use(self, tool: str, during_s: float, **given: str) -> None:
        await tail(self, "PreToolUse", tool_name=tool, tool_use_id=f"call-{tool}", tool_input=given)
        await asyncio.sleep(during_s)
        await tail(self, "PostToolUse", tool_name=tool, tool_use_id=f"call-{tool}", tool_response={"ok": True})


@dataclass
class Scene:
    """The hub, and what stands for `{…}` in the paths of pages."""

    hub: HubProcess
    names: dict[str, str]


@asynccontextmanager
async def playing(home: HubStorage) -> AsyncIterator[Scene]:
    """Start a hub and all who take part; they leave at the end."""
    hub = HubProcess.start(home, **OPTIONS)
    try:
        async with AsyncExitStack() as stack:
            yield Scene(hub, await _populate(hub, stack))
    finally:
        hub.stop()


async def _populate(hub: HubProcess, stack: AsyncExitStack) -> dict[str, str]:
    hub.mint_sessions(["asker", "alice", "bob", "captain", "host", "newcomer", "owner", "remy"])
    hub.mint("chief", "session", admin=True)
    rust = await _agent(hub, stack, Chunker, "rust-expert", RUST, pieces=REPLY)
    notes = await _agent(hub, stack, Notes, "release-notes", NOTES, usage=USED)
    busy = await _agent(hub, stack, Held, "librarian", LIBRARIAN)
    spent = await _agent(hub, stack, Echo, "oracle", SPENT)
    offline = await _agent(hub, stack, Echo, "on-call", ON_CALL)
    await offline.leave()
    analyst = await _agent(hub, stack, Analyst, "analyst", ANALYST)
    laptop = Echo(hub.url, hub.mint("owner", "channel"), host="laptop", cwd="/work/parser", routingName="parser")
    await stack.enter_async_context(laptop)
    thread = await _converse(hub, notes)  # before the questions whose costs reach the agent's limit
    for slug, text, login in QUESTIONS:
        await send(hub.url, f"owner/{slug}", text, hub.mint(login, "session"))
    planner = await _agent(hub, stack, Planner, "release-planner", PLANNER, pieces=PLAN)
    webhook = await _tell(hub, stack)
    question = "What is left to do before we release 2.0?"
    await send(hub.url, planner.handle, question, hub.mint("asker", "session"))
    await _keep_busy(hub, stack, busy)
    await _work(hub, rust)
    return {
        "agent": rust.handle,
        "busy": busy.handle,
        "spent": spent.handle,
        "offline": offline.handle,
        "all": analyst.handle,
        "session": str(rust.session_id),
        "quiet": str(laptop.session_id),
        "thread": thread,
        "id": str(rust.agent["id"]),
        "unasked": str(offline.agent["id"]),
        "webhook": str(webhook),
        "ask": await find_ask(hub, "asker", planner.handle),
        "remote": str(await _change_card(hub, stack)),
        **await _share_answers(hub, analyst),
        **await asyncio.to_thread(make_rows, hub, "make_scene()"),
    }


async def _share_answers(hub: HubProcess, analyst: ChannelAgent) -> dict[str, str]:
    """An answer with everything that alice shares with bob, with everyone, and by a link."""
    token = hub.mint("alice", "session")
    task = await send(hub.url, analyst.handle, "What do the **numbers** of this year say?", token)
    made = {}
    for whom in ({"audience": "user", "login": "bob"}, {"audience": "everyone", "days": 30}, {"audience": "link"}):
        answer = await api(hub, "alice", "POST", "/shares", {"taskId": task["id"], **whom})
        made[whom["audience"]] = answer
    return {"shared": str(made["user"]["id"]), "link": made["link"]["url"].rpartition("/")[2]}


async def _agent(
    hub: HubProcess,
    stack: AsyncExitStack,
    kind: Callable[..., ChannelAgent],
    slug: str,
    fields: Json,
    **options: object,
) -> ChannelAgent:
    peer = kind(
        hub.url, hub.mint("owner", "channel"), host="build-3", cwd=f"/work/{slug}", routingName=slug, **options
    )
    await stack.enter_async_context(peer)
    assert peer.session_id is not None
    peer.agent = await publish(hub, hub.mint("owner", "session"), peer.session_id, slug, **fields)
    peer.handle = peer.agent["handle"]
    return peer


async def _converse(hub: HubProcess, agent: ChannelAgent) -> str:
    """The asker asks all of `CONVERSATION` in one context; the id of its thread."""
    caller = Caller(hub.url, agent.handle, hub.mint("asker", "session"))
    context: Json = {}
    for text in CONVERSATION:
        context = {"contextId": (await caller.send(text, **context))["contextId"]}
    found = await api(hub, "asker", "GET", f"/threads?agent={agent.handle}&q=migration")
    return str(found["items"][0]["id"])


async def _keep_busy(hub: HubProcess, stack: AsyncExitStack, agent: ChannelAgent) -> None:
    """A caller waits for an answer as long as the scene lasts."""
    asking = asyncio.create_task(send(hub.url, agent.handle, "Read me a book", hub.mint("bob", "session")))
    stack.callback(asking.cancel)
    await agent.heard("prompt")


async def _work(hub: HubProcess, agent: ChannelAgent) -> None:
    """Show operators of the agent steps of its work, and a permission request that is not decided."""
    await share(hub, agent, "bob", "approver")
    await share(hub, agent, "alice", "viewer")
    await tail(agent, "PreToolUse", tool_name="Read", tool_input={"file": "src/lib.rs"})
    await tail(agent, "PostToolUse", tool_name="Read", tool_response={"lines": 214})
    await request_permission(agent, "leave-1", tool="Bash", preview="cargo test --workspace")


async def _tell(hub: HubProcess, stack: AsyncExitStack) -> int:
    """A webhook of the owner's with one delivery that arrived, and one that did not; its id."""
    receiver = stack.enter_context(receiving())
    made = await api(hub, "owner", "POST", "/webhooks", {"url": receiver.url, "events": ["agent.replied"]})
    for count, status in ((1, 204), (2, 500)):
        receiver.answer = lambda _, status=status: status  # type: ignore[misc]
        await api(hub, "owner", "POST", f"/webhooks/{made['id']}/test")
        await asyncio.to_thread(receiver.heard, count)
    return int(made["id"])


async def find_ask(hub: HubProcess, login: str, handle: str) -> str:
    """The id of a user's last question to an agent, once its exchange is recorded."""

    async def look() -> str | None:
        found = await api(hub, login, "GET", f"/questions?agent={handle}")
        ask = await api(hub, login, "GET", f"/questions/{found['items'][0]['id']}")
        return str(ask["id"]) if ask["exchanges"] else None

    return await eventually(look, "the exchange is recorded")


def make_rows(hub: HubProcess, call: str) -> dict[str, str]:
    """Call a function of `scene_rows` in the hub's Django; the ids that it returns, by their names."""
    found: dict[str, str] = call_rows(hub.home, "scene_rows", call)
    return found


def call_rows(home: HubStorage, module: str, call: str) -> Any:
    """Call a function of a module of this package in the Django of a hub; what it returns."""
    code = f"import json; from tests.browser import {module}; print(json.dumps({module}.{call}))"
    return json.loads(manage(home.env, "shell", "--no-imports", "-c", code).splitlines()[-1])


async def _change_card(hub: HubProcess, stack: AsyncExitStack) -> int:
    """A remote server of remy's whose card changed; the id of its agent."""
    skills = [{"id": "tides", "name": "Tides"}, {"id": "winds", "name": "Winds"}]
    changing = Changing(offering("/one", name="Weather", skills=skills))
    far = await stack.enter_async_context(raw_server(changing.answer))
    place = {"cardUrl": f"{far.url}/card.json"}
    made = await api(hub, "remy", "POST", "/agents", {"name": "Weather", "slug": "weather", "remote": place})
    skills = [{"id": "tides", "name": "Tides and currents"}]
    changing.card = offering("/two", name="Weather", skills=skills, description="\u202eforecasts")
    await api(hub, "remy", "PATCH", f"/agents/{made['id']}", {"remote": place})
    return int(made["id"])
