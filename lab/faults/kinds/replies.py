"""F13 and F14: agents whose replies are slow, endless, or far too large; and callers who read a stream slowly."""

import asyncio
import json
import re
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from lab.callers import Json, bearer, call, envelope, rpc_path, web
from lab.faults.agents import EchoAgent
from lab.faults.fault import Fault, Scene, became_true
from lab.faults.requests import LoadRequest
from lab.figures import percentile

DROPS = 2  # while there is time
MANY, VERY_MANY = 20_000, 1_000_000
SLACK_S = 10.0
ASK_EVERY_S = 1.0
SERVED_WITHIN_S = 100.0  # the claim of a turn that did not end well is kept for up to 60 s
MEMORY = 96 * 1024 * 1024
TOO_LARGE, OFFLINE, LATE = "over the size limit", "offline", "did not reply within"


class Bad(EchoAgent):
    """Replies badly to the first question, and as an echo afterwards. `many`: the chunks of an endless reply.

    `wait_s`: how long the caller waits.
    """

    many = MANY
    wait_s = 0.0
    is_bad = True

    async def answer(self, prompt: Json) -> None:
        if not self.is_bad:
            await super().answer(prompt)
            return
        self.is_bad = False
        await self.reply_badly(prompt["chatId"])

    async def reply_badly(self, chat_id: str) -> None:
        """Send the bad reply."""


class Trickle(Bad):
    """A few chunks, of which the last comes too late."""

    async def reply_badly(self, chat_id: str) -> None:
        for _ in range(DROPS + 1):
            await self.chunk(chat_id, "drop")
            await asyncio.sleep(self.wait_s / DROPS)
        await self.chunk(chat_id, "", done=True)


class Endless(Bad):
    """Small chunks without end, also after the hub refused them."""

    async def reply_badly(self, chat_id: str) -> None:
        for _ in range(self.many):
            await self.chunk(chat_id, "on and on")
        await self.chunk(chat_id, "", done=True)


class WideChunk(Bad):
    """One chunk of 256 KiB."""

    async def reply_badly(self, chat_id: str) -> None:
        await self.chunk(chat_id, "w" * 262_144, done=True)


class LongReply(Bad):
    """A whole reply of 2 MiB."""

    async def reply_badly(self, chat_id: str) -> None:
        await self.reply(chat_id, "l" * 2_097_152)


class HugeFrame(Bad):
    """A frame of 64 MiB: the socket closes before it is read."""

    async def reply_badly(self, chat_id: str) -> None:
        await self.reply(chat_id, "h" * 67_108_864)


KINDS: list[tuple[type[Bad], str]] = [
    (Trickle, LATE), (Endless, TOO_LARGE), (WideChunk, TOO_LARGE), (LongReply, TOO_LARGE), (HugeFrame, OFFLINE),
]  # fmt: skip


async def bad_replies(scene: Scene) -> None:
    """Ask one agent of each kind at the same time."""
    for first in range(0, scene.count, len(KINDS)):
        kinds = [KINDS[number % len(KINDS)] for number in scene.numbers[first : first + len(KINDS)]]
        hubs = [scene.stack.process_of(index) for index in range(len(scene.stack.urls))]
        before = [hub.memory_info().rss for hub in hubs]
        await asyncio.gather(*(_reply_badly(scene, *kind, number) for number, kind in enumerate(kinds)))
        for hub, least in zip(hubs, before, strict=True):
            grown = hub.memory_info().rss - least
            scene.note("bad replies cost a process less than 96 MiB", grown < MEMORY, f"{grown / 2**20:.0f} MiB")


async def _reply_badly(scene: Scene, kind: type[Bad], text: str, number: int) -> None:
    urls = scene.stack.urls
    async with scene.extra_agent(kind, urls[number % len(urls)], concurrencyCap=1) as agent:
        agent.wait_s = scene.stack.reply_wait_s
        agent.many = VERY_MANY if scene.count > len(KINDS) else MANY
        answer = await scene.ask(agent, number)
        is_in_time = answer.took_s < scene.stack.reply_wait_s + SLACK_S
        ok = answer.outcome == "failed" and text in answer.text and is_in_time
        scene.note(f"{kind.__name__}: the task fails, and says why: {text}", ok, answer.summary)
        again = await became_true(lambda: _echoes(scene, agent, number), SERVED_WITHIN_S, every_s=ASK_EVERY_S)
        scene.note(f"{kind.__name__}: the agent is served again", again, agent.handle)


async def _echoes(scene: Scene, agent: Bad, number: int) -> bool:
    return (await scene.ask(agent, number)).outcome == "completed"


AT_ONCE = 20
PIECES, PIECE_CHARS = 900, 1_000
PIECE = "\x01" * PIECE_CHARS  # six bytes each on the wire: more than the kernel holds for a slow reader
WHOLE = re.compile(rb"^id: \S+\.(\d+)\ndata: [^\n]*\n\n", re.MULTILINE)
LITTLE_ROOM = 4_096
MEMORY_EACH = 2 * 1024 * 1024
CLOSED_WITHIN_S = 60.0
SLACK_S = 10.0
FOLLOWED_WITHIN_S = 60.0
NOISE_S = 0.25
LAST = "SELECT seq FROM a2a_bridge_storedtask WHERE id = %s"


class Teller(EchoAgent):
    """Streams a long reply as soon as `may_tell` is set."""

    def __init__(self, *args: object, **named: object) -> None:
        super().__init__(*args, **named)  # type: ignore[arg-type]
        self.may_tell = asyncio.Event()

    async def answer(self, prompt: Json) -> None:
        await self.may_tell.wait()
        for _ in range(PIECES):
            await self.chunk(prompt["chatId"], PIECE)
        await self.chunk(prompt["chatId"], "", done=True)


@dataclass
class Reader:
    """A caller with its own socket. `reads`: a byte a second, else nothing; `seqs`: the whole events it read."""

    url: str
    reads: bool
    seqs: list[int] = field(default_factory=list)
    port: int = 0
    _raw: bytes = b""
    _socket: socket.socket | None = None

    async def open(self, asked: LoadRequest, task_id: str) -> None:
        """Subscribe, with as little room as the kernel allows."""
        body = json.dumps(envelope("SubscribeToTask", {"id": task_id})).encode()
        host, _, port = self.url.removeprefix("http://").partition(":")
        head = f"POST {rpc_path(asked.handle)} HTTP/1.1\r\nHost: {host}\r\nA2A-Version: 1.0\r\n"
        head += f"Authorization: Bearer {asked.token}\r\nContent-Type: application/json\r\n"
        self._socket = one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LITTLE_ROOM)
        one.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(one, (host, int(port)))
        self.port = one.getsockname()[1]
        await loop.sock_sendall(one, f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        async with asyncio.timeout(FOLLOWED_WITHIN_S):
            while b"\nid: " not in self._raw:  # it follows: the task as it is
                self._raw += await loop.sock_recv(one, 256)

    async def dawdle(self) -> None:
        """Read a byte a second, or wait."""
        assert self._socket is not None
        while True:
            await asyncio.sleep(1)
            if self.reads:
                self._raw += await asyncio.get_running_loop().sock_recv(self._socket, 1)

    async def close(self) -> None:
        """Read the rest, and list the events that came whole."""
        assert self._socket is not None
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(SLACK_S):
                while more := await asyncio.get_running_loop().sock_recv(self._socket, 65_536):
                    self._raw += more
        self._socket.close()
        self.seqs = [int(seq) for seq in WHOLE.findall(self._raw)]


async def slow_readers(scene: Scene) -> None:
    """Twenty followers of one long reply at once, half of them a byte a second and half not at all."""
    done = 0
    while done < scene.count:
        at_once = min(AT_ONCE, scene.count - done)
        async with scene.extra_agent(Teller) as teller:
            await _tell_once(scene, teller, done, at_once)  # memory that is fetched once and kept
            usual = await _tell_once(scene, teller, done, 1)  # what the task itself costs is not the streams'
            each = await _be_slow(scene, teller, _readers(scene, at_once), done, *usual)
            if each > MEMORY_EACH:  # the whole process is measured, with all else it does: look again
                teller.may_tell.clear()
                each = min(each, await _be_slow(scene, teller, _readers(scene, at_once), done, *usual))
        detail = f"{each / 2**20:.2f} MiB"
        scene.note("memory of a stream that is not read: at most 2 MiB", each <= MEMORY_EACH, detail)
        done += at_once


def _readers(scene: Scene, count: int) -> list[Reader]:
    return [Reader(scene.stack.url, reads=number % 2 == 0) for number in range(count)]


async def _tell_once(scene: Scene, teller: Teller, number: int, followers: int) -> tuple[int, float]:
    """One reply to callers that read; the growth of the hub in bytes, and the p95 of other asks meanwhile."""
    hub = scene.stack.process_of()
    before = hub.memory_info().rss
    asked, task_id = await _begin(scene, teller, number)
    teller.may_tell.set()
    others = asyncio.get_running_loop().create_task(_ask_meanwhile(scene, number))
    await asyncio.gather(*(_follow(scene, asked, task_id, 0) for _ in range(followers)))
    p95_s = await others
    teller.may_tell.clear()
    return max(0, hub.memory_info().rss - before), p95_s


async def _be_slow(
    scene: Scene, teller: Teller, readers: list[Reader], number: int, own_cost: int, calm_s: float
) -> float:
    """One reply to slow callers; the growth of the hub in bytes for each of them."""
    asked, task_id = await _begin(scene, teller, number)
    for reader in readers:
        await reader.open(asked, task_id)
    hub = scene.stack.process_of()
    before = hub.memory_info().rss
    dawdling = [asyncio.get_running_loop().create_task(reader.dawdle()) for reader in readers]
    began = time.monotonic()
    teller.may_tell.set()
    others = asyncio.get_running_loop().create_task(_ask_meanwhile(scene, number))
    good = await _follow(scene, asked, task_id, 0)
    most, closed_after_s = await _until_closed(hub, readers)
    for task in dawdling:
        task.cancel()
    await asyncio.gather(*dawdling, return_exceptions=True)
    in_time = closed_after_s <= scene.stack.seconds(CLOSED_WITHIN_S) + SLACK_S
    scene.note("streams that are not read are closed within 60 s", in_time, f"{closed_after_s:.0f} s")
    ((last,),) = scene.stack.sql(LAST, task_id)
    of = f"{len(good)} events, the last is {last}"
    scene.note("a caller that reads gets each event once, beside callers that do not", _is_whole(good, last), of)
    p95_s = await others
    detail = f"{p95_s:.2f} s, {calm_s:.2f} s beside one who reads"
    what = (
        "asks of other callers take at most 10 % longer (p95), and 0.25 s for a busy machine, beside slow readers"
    )
    scene.note(what, p95_s <= 1.1 * calm_s + NOISE_S, detail)
    for reader in readers:
        await reader.close()
        rest = await _follow(scene, asked, task_id, reader.seqs[-1] if reader.seqs else 0)
        told = reader.seqs + rest
        how = "a byte a second" if reader.reads else "not at all"
        detail = f"{len(reader.seqs)} events, then {len(rest)}, of {last}; {time.monotonic() - began:.0f} s"
        scene.note(f"read {how}, then resumed by Last-Event-ID: each event once", _is_whole(told, last), detail)
    return float(most - before - own_cost) / len(readers)


async def _begin(scene: Scene, teller: Teller, number: int) -> tuple[LoadRequest, str]:
    """Begin a task without waiting for it; the question, and the id of the task."""
    asked = scene.load.question(teller, scene.caller(number))
    params = asked.params(configuration={"returnImmediately": True})
    began = await call(scene.stack.url, asked.handle, asked.token, "SendMessage", params, version="1.0")
    task_id = str(began.json()["result"]["task"]["id"])
    scene.load.log_by_hand(asked, scene.caller(number), task_id)
    return asked, task_id


async def _follow(scene: Scene, asked: LoadRequest, task_id: str, after: int) -> list[int]:
    """The numbers of the events after that one, to the end."""
    headers = bearer(asked.token) | {"A2A-Version": "1.0", "Last-Event-ID": f"{task_id}.{after}"}
    body = envelope("SubscribeToTask", {"id": task_id})
    async with (
        asyncio.timeout(FOLLOWED_WITHIN_S),
        web(scene.stack.url) as client,
        client.stream("POST", rpc_path(asked.handle), json=body, headers=headers) as response,
    ):
        ids = [line async for line in response.aiter_lines() if line.startswith("id: ")]
    return [int(line.rpartition(".")[2]) for line in ids]


def _is_whole(seqs: list[int], last: int) -> bool:
    """True if every event came once, up to the last; a snapshot may come first."""
    return len(seqs) >= PIECES and seqs[0] <= 1 and seqs == list(range(seqs[0], last + 1))


async def _until_closed(hub: psutil.Process, readers: list[Reader]) -> tuple[int, float]:
    """The largest memory of the hub, and the seconds until it had closed all of these connections."""
    began, most = time.monotonic(), 0
    ports = {reader.port for reader in readers}
    while time.monotonic() < began + CLOSED_WITHIN_S + SLACK_S:
        most = max(most, hub.memory_info().rss)
        held = await asyncio.to_thread(hub.net_connections, "tcp")
        if not any(one.raddr and one.raddr.port in ports and one.status == "ESTABLISHED" for one in held):
            break
        await asyncio.sleep(0.5)
    return most, time.monotonic() - began


async def _ask_meanwhile(scene: Scene, number: int) -> float:
    """Ask another agent; the seconds in which 95 of 100 asks were answered."""
    took: list[float] = []
    async with scene.extra_agent(EchoAgent) as other:
        for turn in range(20):
            answer = await scene.ask(other, number + turn, url=0)
            took.append(answer.took_s)
            scene.note("other callers are answered meanwhile", answer.outcome == "completed", f"{answer} ({turn})")
    return percentile(took, 0.9)  # of so few the 95th is the slowest


FAULTS = [
    Fault("F14", "replies drop by drop, without end, far too large", 5, 50, bad_replies,
          fills=("bad replies cost",)),
    Fault("F13", "slow and stopped readers of a stream", 20, 200, slow_readers,
          fills=("memory of a stream", "streams that are not read", "a caller that reads", "read ")),
]  # fmt: skip
