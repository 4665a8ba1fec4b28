"""F17: owners whose webhooks are sent to bad receivers; the deliveries of others go on."""

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial

from lab.faults.fault import Fault, Scene
from lab.faults.participants import EVENTS
from lab.figures import percentile
from lab.processes import free_port
from lab.receivers import receiving, talking

AT_ONCE = 8
BAD_OWNERS = ("owner-1", "owner-2", "owner-3")  # the first owner's receiver is the good one
FOR_S = 25.0
CALM_S = 6.0
CAUGHT_UP_WITHIN_S = 90.0
LOOK_EVERY_S = 0.5
DELIVERED_P95_S = 5.0
HELD_S = 15.0
HANG_S = 60.0
GOOD = """
SELECT extract(epoch FROM coalesce(delivered_at, clock_timestamp()) - queued_at)::float FROM webhooks_delivery d
JOIN webhooks_subscription s ON s.id = d.subscription_id JOIN accounts_user u ON u.id = s.owner_id
WHERE u.login = 'owner-0' AND queued_at >= %s
"""
HELD = """
SELECT u.login = 'owner-0',
    max(extract(epoch FROM clock_timestamp() - (next_attempt_at - interval '60 seconds')))::float
FROM webhooks_delivery d
JOIN webhooks_subscription s ON s.id = d.subscription_id JOIN accounts_user u ON u.id = s.owner_id
WHERE d.status = 'sending' GROUP BY 1
"""
LATE = """
SELECT count(*) FROM webhooks_delivery d
JOIN webhooks_subscription s ON s.id = d.subscription_id JOIN accounts_user u ON u.id = s.owner_id
WHERE u.login = 'owner-0' AND delivered_at IS NULL AND queued_at < clock_timestamp() - interval '2 seconds'
"""
TRIED = "SELECT count(*), max(last_error) FROM webhooks_delivery WHERE subscription_id = %s AND attempts > 0"


@contextmanager
def refusing() -> Iterator[str]:
    """No program listens at the address."""
    yield f"http://127.0.0.1:{free_port()}/"


@contextmanager
def answering(status: int, scheme: str = "http") -> Iterator[str]:
    """The receiver answers with this status. The scheme https is wrong: the receiver speaks no TLS."""
    with receiving(lambda _: status) as receiver:
        yield receiver.url.replace("http:", f"{scheme}:")


@contextmanager
def sending(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """The receiver answers byte by byte as `talk` does."""
    with talking(talk) as port:
        yield f"http://127.0.0.1:{port}/"


def hang(_: socket.socket) -> None:
    """Accept the request and answer nothing."""
    time.sleep(HANG_S)


def send_endlessly(connection: socket.socket) -> None:
    """Answer 200 with an endless body."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
    while True:
        connection.sendall(b"x" * 65_536)


def send_slowly(connection: socket.socket) -> None:
    """Answer one byte in a second."""
    for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"y" * 60:
        connection.sendall(bytes([byte]))
        time.sleep(1)


def send_no_http(connection: socket.socket) -> None:
    """Answer something that is not HTTP, and close the connection."""
    connection.sendall(b"\x00\xff220 ready\r\n" * 100)


BAD: list[Callable[[], AbstractContextManager[str]]] = [
    refusing,
    partial(sending, hang),
    partial(answering, 500),
    partial(answering, 301),  # to another path of its own
    partial(sending, send_endlessly),
    partial(sending, send_slowly),
    partial(answering, 204, "https"),
    partial(sending, send_no_http),
]


async def bad_receivers(scene: Scene) -> None:
    """Subscribe eight bad receivers at once, of every kind, while the agents of all owners are asked."""
    for first in range(0, scene.count, AT_ONCE):
        with ExitStack() as receivers:
            urls = [
                receivers.enter_context(BAD[number % len(BAD)]())
                for number in scene.numbers[first : first + AT_ONCE]
            ]
            await _deliver(scene, urls)


async def _deliver(scene: Scene, urls: list[str]) -> None:
    await _none_late(scene)
    calm = await _p95(scene, CALM_S)
    made = []
    for number, url in enumerate(urls):
        owner = BAD_OWNERS[number % len(BAD_OWNERS)]
        row = await scene.participants.call(owner, "POST", "/api/v1/webhooks", {"url": url, "events": EVENTS})
        made.append((owner, row["id"]))
    ((since,),) = scene.stack.sql("SELECT clock_timestamp()")
    by_good, by_bad = await _longest_held(scene)
    what = "a bad receiver holds no sender 15 s longer than the good one does"
    scene.note(what, by_bad <= by_good + HELD_S, f"{by_bad:.1f} s, {by_good:.1f} s by the good one")
    for number, (owner, webhook_id) in enumerate(made):
        ((tried, error),) = scene.stack.sql(TRIED, webhook_id)
        what = "every bad receiver was tried"
        scene.note(what, tried > 0, f"{urls[number]} {tried} {error}")
        await scene.participants.call(owner, "DELETE", f"/api/v1/webhooks/{webhook_id}")
    took = _took(scene, since)
    detail = f"{took[1]:.2f} s of {took[0]}, {calm:.2f} s before"
    what = "deliveries to other receivers take at most 5 s longer (p95) beside bad receivers"
    scene.note(what, took[0] > 0 and took[1] < calm + DELIVERED_P95_S, detail)


async def _none_late(scene: Scene) -> None:
    """Wait for the deliveries that an earlier fault held up: their delay is not caused by bad receivers."""
    until = time.monotonic() + CAUGHT_UP_WITHIN_S
    while scene.stack.sql(LATE) != [(0,)] and time.monotonic() < until:
        await asyncio.sleep(LOOK_EVERY_S)


async def _p95(scene: Scene, for_s: float) -> float:
    """The p95 of good deliveries before there are bad receivers."""
    ((since,),) = scene.stack.sql("SELECT clock_timestamp()")
    await asyncio.sleep(for_s)
    return _took(scene, since)[1]


def _took(scene: Scene, since: object) -> tuple[int, float]:
    """The number of good deliveries queued since, and the p95 of their seconds until delivery, or until now."""
    took = [float(row[0]) for row in scene.stack.sql(GOOD, since)]
    return len(took), percentile(took, 0.95) if took else 0.0


async def _longest_held(scene: Scene) -> tuple[float, float]:
    """The longest time in seconds that the good receiver, and a bad one, held a sender."""
    until, longest = time.monotonic() + FOR_S, {True: 0.0, False: 0.0}
    while time.monotonic() < until:
        for is_good, held in scene.stack.sql(HELD):
            longest[is_good] = max(longest[is_good], held)
        await asyncio.sleep(LOOK_EVERY_S)
    return longest[True], longest[False]


FAULTS = [
    Fault("F17", "bad webhook receivers", 8, 80, bad_receivers,
          loops=2,
          fills=("a bad receiver holds no sender", "every bad receiver was tried", "deliveries to other")),
]  # fmt: skip
