"""The demo of `make run`: the agent `demo/echo`, connected over its own socket, and a question to ask it."""

import asyncio

from django.conf import settings

from accounts.models import Credential, User
from accounts.tokens import get_or_create_local_user, mint
from agents.models import Agent, Session
from clawbridge.connect import Agent as ConnectedAgent
from clawbridge.connect import Ending, Welcome, echo
from kit.async_db import db_call

OWNER = "demo"
SLUG = "echo"
CALLER = "you"
CREDENTIAL = "make run"
ONLINE_WITHIN_S = 20.0


class Demo:
    """Runs the echo agent inside the hub's process, through the network like any other."""

    def __init__(self) -> None:
        self._agent: ConnectedAgent | None = None
        self._running: asyncio.Task[Ending] | None = None

    async def start(self) -> str:
        """Bring the agent online; returns the token of a caller who may ask the agent."""
        agent_token, session_id, caller_token = await db_call(prepare)()
        online = asyncio.Event()

        def welcomed(welcome: Welcome) -> None:
            online.set()

        self._agent = ConnectedAgent(
            hub=f"http://{_reachable(settings.HOST)}:{settings.PORT}",
            token=agent_token,
            answer=echo,
            streams=False,
            session_id=session_id,
            on_welcome=welcomed,
        )
        self._running = asyncio.get_running_loop().create_task(self._agent.run(), name="demo agent")
        await asyncio.wait_for(online.wait(), ONLINE_WITHIN_S)
        return caller_token

    def lines(self, caller_token: str) -> list[str]:
        """The lines to show: the token, and a curl that asks the agent."""
        return ["", "token:", f"  {caller_token}", "", "ask the demo agent:", *_curl(caller_token)]

    async def stop(self) -> None:
        """Take the agent offline."""
        if self._agent is not None and self._running is not None:
            await self._agent.stop()
            await self._running


def prepare() -> tuple[str, str, str]:
    """Make or update the rows of the demo; returns a channel token, the id of the agent's session, a caller's
    token.
    """
    owner = get_or_create_local_user(OWNER)
    User.objects.filter(pk=owner.pk).update(is_active=True)
    session = _agent_row(owner).session
    caller = get_or_create_local_user(CALLER)
    return _mint(owner, Credential.Kind.CHANNEL), str(session.public_id), _mint(caller, Credential.Kind.SESSION)


def _agent_row(owner: User) -> Agent:
    handle = f"{owner.login}/{SLUG}"
    agent: Agent = Agent.objects.at(handle).filter(owner=owner).order_by("deleted_at").last() or Agent(
        owner=owner,
        handle=handle,
        handle_key=handle.lower(),
        name="echo",
        tagline="says what you say",
        description="The demo agent of this hub. It answers every question with the question.",
        session=Session.objects.create(owner=owner, routing_name=SLUG),
    )
    agent.deleted_at = None
    agent.set_status(Agent.Status.PUBLISHED)
    agent.save()
    return agent


def _mint(user: User, kind: Credential.Kind) -> str:
    """Mint a token for this run, and revoke the token of the run before."""
    user.credentials.filter(kind=kind, name=CREDENTIAL).revoke()
    return mint(user, kind, CREDENTIAL).token


def _reachable(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104  a name for "all", not a bind


def _curl(token: str) -> list[str]:
    body = (
        '{"jsonrpc":"2.0","id":"1","method":"SendMessage","params":{"message":'
        '{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hello"}]}}}'
    )
    return [
        f"  curl -s {settings.PUBLIC_URL}/api/a2a/v1/agents/{OWNER}/{SLUG} \\",
        f"    -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \\",
        f"    -d '{body}'",
    ]
