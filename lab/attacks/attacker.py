"""The attacker: one free account, its requests, and how the hub answered them.

`python -m lab.attacks.attacker KIND SECONDS` attacks in a process of its own, so that the attack does not delay
the callers that are measured. Standard input names the account; the last line of the output counts the answers.
"""

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from lab.bench.client import HttpConnection, RawResponse, fetch, request
from lab.bench.streams import room_for
from lab.callers import bearer

KINDS = "lab.attacks.kinds"
BEGUN = "attacking"
NICENESS = 19  # the measured callers and the agents share a core with the attacker, and go first
AGAIN_S = 0.05
ANSWERED_WITHIN_S = 30.0
UNREAD_BYTES = 4_096
SOCKETS = 4_000
BOUNDARY = "end-of-the-file"
LOST = (OSError, EOFError, ValueError, asyncio.LimitOverrunError)


@dataclass(frozen=True)
class AttackedHub:
    """The hub under attack. `handle`: of an agent of another user."""

    port: int
    handle: str

    @property
    def url(self) -> str:
        """The hub's origin."""
        return f"http://127.0.0.1:{self.port}"


@dataclass
class Attacker:
    """One free account. `thread`: the id of its longest thread. `ends`: the hub's answers, by kind of answer."""

    token: str
    channel_token: str
    thread: str
    ends: Counter[str] = field(default_factory=Counter)

    @property
    def headers(self) -> str:
        """The header lines of a request of this account."""
        return f"Authorization: Bearer {self.token}\r\n"

    @property
    def cookie(self) -> str:
        """The header line by which a browser shows the session of this account."""
        return f"Cookie: cw_session={self.token}\r\n"

    async def call(self, hub: AttackedHub, method: str, path: str, body: object = None) -> RawResponse:
        """The response to one request over a connection of its own."""
        response = await fetch(hub.port, request(method, path, self.headers, body))
        self.count(response)
        return response

    def count(self, response: RawResponse) -> None:
        """Count a response by its status, a refusal also by its code."""
        self.ends[described(response)] += 1

    async def flood(self, hub: AttackedHub, at_once: int, make: Callable[[int], bytes]) -> None:
        """Send requests over so many connections, each as soon as the one before was answered."""
        await together(at_once, lambda number: self._flood_one(hub, number, at_once, make))

    async def leave_unread(self, hub: AttackedHub, at_once: int, make: Callable[[int], bytes]) -> None:
        """Ask over so many connections, and read only the head of each response; ask again after a refusal."""

        async def hold(number: int) -> None:
            tries = 0
            while True:
                async with slow_connection(hub) as connection:
                    connection.writer.write(make(number + tries * at_once))
                    try:
                        head = await connection.read_head()
                    except LOST as failure:
                        self.ends[type(failure).__name__] += 1
                    else:
                        status = int(head.split()[1])
                        self.ends[str(status)] += 1
                        if status == 200:
                            await asyncio.Event().wait()
                tries += 1
                await asyncio.sleep(AGAIN_S)

        await together(at_once, hold)

    async def trickle(self, hub: AttackedHub, at_once: int, head: bytes, every_s: float = 0.2) -> None:
        """Send the heads of requests over so many connections, and then a byte now and then."""

        async def drip(_: int) -> None:
            while True:
                async with slow_connection(hub) as connection:
                    connection.writer.write(head)
                    self.ends["connection"] += 1
                    with suppress(ConnectionError):
                        while not connection.reader.at_eof() and not connection.writer.is_closing():
                            connection.writer.write(b" ")
                            await asyncio.sleep(every_s)
                            with suppress(TimeoutError):
                                async with asyncio.timeout(0):
                                    answered = await connection.reader.read(UNREAD_BYTES)
                                    self.ends[(answered.split() or [b"", b"closed"])[1].decode()] += 1
                                    break
                await asyncio.sleep(AGAIN_S)

        await together(at_once, drip)

    async def open_socket(self, hub: AttackedHub, path: str, **options: Any) -> ClientConnection | None:
        """A WebSocket that reads nothing beyond its buffer; None if it was refused. `token`: empty for none."""
        token = options.pop("token", self.token)
        headers = bearer(token) if token else {}
        url = f"ws://127.0.0.1:{hub.port}{path}"
        try:
            socket = await connect(
                url, additional_headers=headers, proxy=None, ping_interval=None, max_size=2**23, **options
            )
        except InvalidStatus as refused:
            self.ends[str(refused.response.status_code)] += 1
            return None
        except (WebSocketException, OSError) as failure:
            self.ends[type(failure).__name__] += 1
            return None
        self.ends["socket"] += 1
        return socket

    async def _flood_one(self, hub: AttackedHub, number: int, at_once: int, make: Callable[[int], bytes]) -> None:
        while True:
            try:
                async with slow_connection(hub, limit=2**23) as connection:
                    while True:
                        self.count(await connection.ask(make(number)))
                        number += at_once
            except LOST as failure:
                self.ends[type(failure).__name__] += 1
            await asyncio.sleep(AGAIN_S)


Kind = Callable[[AttackedHub, Attacker], Any]


def described(response: RawResponse) -> str:
    """The status of a response, and the code of a refusal."""
    with suppress(ValueError):
        answer = json.loads(response.body)
        if isinstance(answer, dict) and (error := answer.get("error")):
            code = error.get("code", "") if isinstance(error, Mapping) else error
            return f"{response.status} {code}".strip()
        if b"TASK_STATE_FAILED" in response.body:
            return f"{response.status} failed task"
    return str(response.status)


def upload_request(headers: str, name: str, data: bytes, media_type: str) -> bytes:
    """A request that uploads a file to ask with."""
    part = f'Content-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: {media_type}'
    body = f"--{BOUNDARY}\r\n{part}\r\n\r\n".encode() + data + f"\r\n--{BOUNDARY}--\r\n".encode()
    typed = f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n"
    head = f"POST /api/v1/files HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}{typed}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def together(at_once: int, work: Callable[[int], Any]) -> None:
    """Run so many workers, each with its number, until they end."""
    async with asyncio.TaskGroup() as workers:
        for number in range(at_once):
            workers.create_task(work(number))


@asynccontextmanager
async def slow_connection(hub: AttackedHub, *, limit: int = UNREAD_BYTES) -> AsyncIterator[HttpConnection]:
    """A connection that takes up little of what is not read."""
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port, limit=limit)
    try:
        yield HttpConnection(reader, writer)
    finally:
        writer.transport.abort()


async def attack(kind: Kind, hub: AttackedHub, attacker: Attacker, seconds: float) -> None:
    """Attack for some seconds, and on a busy machine until the first answer; then stop at once."""
    attacking = asyncio.ensure_future(_attack_on(kind, hub, attacker))
    until = time.monotonic() + ANSWERED_WITHIN_S
    await asyncio.wait([attacking], timeout=seconds)
    while not (attacker.ends or attacking.done()) and time.monotonic() < until:
        await asyncio.sleep(AGAIN_S)
    if attacking.done():
        attacking.result()  # raises what ended it
    attacking.cancel()


async def _attack_on(kind: Kind, hub: AttackedHub, attacker: Attacker) -> None:
    await kind(hub, attacker)
    await asyncio.Event().wait()  # what the attack has opened stays open


def main() -> None:
    """Attack as the command line and standard input say, and print how the hub answered."""
    name, seconds, known = sys.argv[1], float(sys.argv[2]), json.load(sys.stdin)
    kind = import_module(KINDS).KINDS[name]
    attacker = Attacker(known["session_token"], known["channel_token"], known["thread"])
    room_for(SOCKETS)
    os.nice(NICENESS)
    began = time.monotonic()
    sys.stdout.write(f"{BEGUN}\n")
    sys.stdout.flush()
    asyncio.run(attack(kind, AttackedHub(known["port"], known["handle"]), attacker, seconds))
    took_s = time.monotonic() - began
    sys.stdout.write(json.dumps({"ends": attacker.ends, "took_s": took_s}) + "\n")
    sys.stdout.flush()
    os._exit(0)  # sockets end with the process, as those of a killed program do


if __name__ == "__main__":
    main()
