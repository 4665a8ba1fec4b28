"""An agent on a hub: connects, stays connected, answers."""

import asyncio
import getpass
import logging
import os
import random
import re
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from socket import gethostname

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import WebSocketException

from clawbridge.checks import hub_address
from clawbridge.connect import frames
from clawbridge.connect.answers import Answer
from clawbridge.connect.connection import Ending, HubConnection, open_socket
from clawbridge.connect.frames import Welcome
from clawbridge.connect.tasks import running

SOCKET_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
TOKEN = re.compile(r"ck_live_[!-~]+")
NAME = re.compile(r"[a-z0-9-]+")


def socket_url(hub: str, path: str) -> str:
    """Give the address of a socket on the hub with this public address.

    Raises:
        ValueError: `hub` is not an http, https, ws or wss address.
    """
    scheme, _, rest = hub_address(hub, SOCKET_SCHEMES).partition(":")
    return f"{SOCKET_SCHEMES[scheme]}:{rest}{path}"


def gateway_url(hub: str) -> str:
    """Give the address of the gateway's socket; one that begins with `ws` is taken as it is.

    Raises:
        ValueError: `hub` is not an http, https, ws or wss address.
    """
    address = hub_address(hub, SOCKET_SCHEMES)
    return address if address.startswith("ws") else socket_url(address, "/gateway")


def checked_token(token: str) -> str:
    """Give the token back if it can be one; the error never shows it."""
    if not TOKEN.fullmatch(token):
        raise ValueError("token: want a channel token, which begins with ck_live_")
    return token


def checked_name(name: str) -> str:
    """Give the routing name back if the hub can take it."""
    if not NAME.fullmatch(name):
        raise ValueError(f"name {name!r}: want only a-z, 0-9 and '-', such as my-agent")
    return name


STEPS_S = (1.0, 2.0, 5.0, 15.0, 30.0)
LAST_STEP_S = 60.0
JITTER = 0.2


def delays_s(random: Callable[[], float]) -> Iterator[float]:
    """Yield the waits 1, 2, 5, 15, 30, 60, 60, … seconds, each up to a fifth longer.

    Args:
        random: a number from 0 up to 1, asked once per wait, so that agents do not all come back at once.
    """
    for step_s in chain(STEPS_S, repeat(LAST_STEP_S)):
        yield step_s * (1 + JITTER * random())


logger = logging.getLogger(__name__)

VERSION = "1.0.0"
SILENCE_S = 60.0


class Agent:
    """Keeps one agent online and answers what it is asked.

    Args:
        hub: the hub's origin, such as `https://hub.example`.
        token: a channel token of the owner, `ck_live_…`.
        answer: called once per question; yields the reply: text in pieces, `Status`, `Artifact` and the like
            (`connect.reply_parts`), or raises `AnswerFailed`.
        name: the routing name to ask for; without one the hub derives it from the working directory.
        streams: send pieces as they come; otherwise each reply is one frame, sent when it is complete.
        session_id: the session of an earlier welcome, to come back to.
        on_welcome: told each time the agent comes online.
        silence_s: seconds without a frame of the hub after which the socket is given up.

    Raises:
        ValueError: hub, token or name cannot be right; the text is fit to show.
    """

    _subprotocol = ""

    def __init__(
        self,
        *,
        hub: str,
        token: str,
        answer: Answer,
        name: str | None = None,
        streams: bool = True,
        session_id: str | None = None,
        on_welcome: Callable[[Welcome], None] | None = None,
        silence_s: float = SILENCE_S,
    ) -> None:
        self._url = self._url_of(hub, name)
        self._token = checked_token(token)
        self._answer = answer
        self._name = None if name is None else checked_name(name)
        self._host = this_host()
        self._streams = streams
        self._session_id = session_id
        self._report_welcome = on_welcome
        self._silence_s = silence_s
        self._delays = delays_s(random.SystemRandom().random)
        self._connection: HubConnection | None = None
        self._stopping = asyncio.Event()
        self._ended = asyncio.Event()
        self._ended.set()

    @property
    def session_id(self) -> str | None:
        """The session the hub gave last, or the one to ask for."""
        return self._session_id

    @property
    def is_stopping(self) -> bool:
        """True if a stop was asked for."""
        return self._stopping.is_set()

    async def run(self) -> Ending:
        """Stay on the hub until there is no point in coming back; the answer says why, and is never `LOST`.

        Call it once. Cancelling it drops open questions, closes the socket and leaves nothing behind.
        """
        self._ended.clear()
        try:
            async with running(self._stay_online()) as online, running(self._stopping.wait()) as stopping:
                await asyncio.wait({online, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if online.done():
                    return online.result()
                if self._connection:
                    await self._connection.finish()
                return Ending.STOPPED
        finally:
            self._ended.set()

    def begin_stop(self) -> None:
        """Ask `run` to end: running questions get 5 s, the socket is closed."""
        self._stopping.set()

    async def stop(self) -> None:
        """Ask `run` to end, and return when it has. Not to be called from inside an answer."""
        self.begin_stop()
        await self._ended.wait()

    async def _stay_online(self) -> Ending:
        while (ending := await self._connect_once()) is Ending.LOST and not self.is_stopping:
            delay_s = next(self._delays)
            logger.info("next try in %.1f s", delay_s)
            await asyncio.sleep(delay_s)
        return ending

    async def _connect_once(self) -> Ending:
        try:
            # The hub's own JSON pings are the sign of life.
            socket = await open_socket(self._url, self._token, self._subprotocol, ping_interval=None)
        except (OSError, WebSocketException) as failure:
            logger.warning("cannot reach %s: %s", self._url, failure)
            return Ending.LOST
        self._connection = self._make_connection(socket)
        try:
            return await self._connection.serve(self._register())
        finally:
            self._connection = None

    def _url_of(self, hub: str, name: str | None) -> str:
        return socket_url(hub, "/channel")

    def _make_connection(self, socket: ClientConnection) -> HubConnection:
        return HubConnection(
            socket,
            answer=self._answer,
            streams=self._streams,
            silence_s=self._silence_s,
            on_welcome=self._welcomed,
        )

    def _welcomed(self, welcome: Welcome) -> None:
        self._session_id = welcome.session_id
        self._delays = delays_s(random.SystemRandom().random)
        if self._report_welcome:
            self._report_welcome(welcome)

    def _register(self) -> str:
        return frames.register(self._host, version=VERSION, session_id=self._session_id, name=self._name)


def this_host() -> dict[str, object]:
    """The machine and the process of the agent, as `register` names them."""
    try:
        os_user = getpass.getuser()
    except (KeyError, OSError):  # the user id of a container may have no user name
        os_user = None
    return {"host": gethostname(), "cwd": os.getcwd(), "osUser": os_user, "pid": os.getpid()}
