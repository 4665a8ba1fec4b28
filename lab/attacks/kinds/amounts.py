"""Objects without number: tasks, tokens, push configs, streams, sessions."""

import itertools

from lab.agents import Stall
from lab.attacks.attacker import AttackedHub, Attacker, together
from lab.attacks.kinds.unread import published
from lab.bench.agents import RawEchoAgent, dial
from lab.bench.client import TASK_ID, fetch, fetch_json, message_params, request
from lab.bench.hubs import AGENTS_PATH
from lab.callers import envelope

AT_ONCE = 32
STREAMS = 150  # more than one caller may have open
V1 = "A2A-Version: 1.0\r\n"


async def tasks(hub: AttackedHub, attacker: Attacker) -> None:
    """tasks that are not waited for"""

    def ask(number: int) -> bytes:
        params = message_params(f"task-{number}", [{"text": f"hold {number}"}], returnImmediately=True)
        return request("POST", AGENTS_PATH + hub.handle, attacker.headers + V1, envelope("SendMessage", params))

    await attacker.flood(hub, AT_ONCE, ask)


async def tokens(hub: AttackedHub, attacker: Attacker) -> None:
    """channel tokens"""

    def mint(number: int) -> bytes:
        return request("POST", "/api/v1/tokens/channel", attacker.headers, {"name": f"token {number}"})

    await attacker.flood(hub, AT_ONCE, mint)


async def push_configs(hub: AttackedHub, attacker: Attacker) -> None:
    """push configs of one task"""
    async with published(hub, attacker, Stall(hub.url, attacker.channel_token)) as handle:
        task_id = await begin_task(hub, attacker, handle)

        def add(number: int) -> bytes:
            params = {"taskId": task_id, "id": f"config-{number}", "url": "http://127.0.0.1:9/push"}
            body = envelope("CreateTaskPushNotificationConfig", params)
            return request("POST", AGENTS_PATH + handle, attacker.headers + V1, body)

        await attacker.flood(hub, AT_ONCE, add)


async def subscriptions(hub: AttackedHub, attacker: Attacker) -> None:
    """streams that follow one task"""
    async with published(hub, attacker, Stall(hub.url, attacker.channel_token)) as handle:
        body = envelope("SubscribeToTask", {"id": await begin_task(hub, attacker, handle)})
        follow = request("POST", AGENTS_PATH + handle, attacker.headers + V1, body)
        await attacker.leave_unread(hub, STREAMS, lambda _: follow)


async def sessions(hub: AttackedHub, attacker: Attacker) -> None:
    """sessions: agents that register as new ones, and leave"""
    numbers = itertools.count()

    async def come_and_go(_: int) -> None:
        while next(numbers) < 100_000:
            try:
                agent = await dial(lambda: RawEchoAgent(attacker.channel_token, None), hub.port)
            except OSError as refused:
                attacker.ends[str(refused)[:60]] += 1
            else:
                attacker.ends["session"] += 1
                agent.leave()

    await together(AT_ONCE, come_and_go)


async def full_account(hub: AttackedHub, attacker: Attacker) -> None:
    """lists of an account with 10,000 tasks, 5,000 sessions, 1,000 agents and 200 tokens"""
    threads = await fetch_json(hub.port, "GET", "/api/v1/threads?limit=1", attacker.token)
    asked, list_tasks = threads["items"][0]["agent"], envelope("ListTasks", {"pageSize": 100})
    paths = ("/sessions", "/peers", "/agents?mine=true", "/tokens", "/threads?limit=100")
    lists = [request("GET", f"/api/v1{path}", attacker.headers) for path in paths]
    lists.append(request("POST", AGENTS_PATH + asked, attacker.headers + V1, list_tasks))
    await attacker.flood(hub, AT_ONCE, lambda number: lists[number % len(lists)])


async def begin_task(hub: AttackedHub, attacker: Attacker, handle: str) -> str:
    """The id of a task that the agent never answers."""
    params = message_params(f"begun-{id(attacker)}", [{"text": "hold"}], returnImmediately=True)
    body = envelope("SendMessage", params) | {"id": "begin"}
    response = await fetch(hub.port, request("POST", AGENTS_PATH + handle, attacker.headers + V1, body))
    attacker.count(response)
    found = TASK_ID.search(response.body)
    if found is None or b"TASK_STATE_FAILED" in response.body:
        raise RuntimeError(f"no task was begun: {response.body[:300]!r}")
    return found[1].decode()
