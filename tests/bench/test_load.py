"""The load generator, against a server that answers each request with a text that the test chooses."""

import socket
import time
from collections.abc import Callable

import pytest

from lab.bench.client import Template
from lab.bench.load import AskedServer, LoadRun, measure_servers
from lab.figures import median_ratio, percentile, spread
from lab.receivers import talking

REQUESTS = [Template("GET / HTTP/1.1\r\nNumber: ", "\r\n\r\n", answered="fine")]
LATE_S = 0.3


def load(answer: Callable[[int], str], *, rate: float | None = None, connections: int = 2) -> LoadRun:
    """A run against a server; `answer` gives the text for the number of a request."""

    def talk(connection: socket.socket) -> None:
        while asked := connection.recv(4096):
            text = answer(int(asked.partition(b"Number: ")[2].split()[0]))
            connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())

    with talking(talk) as port:
        return measure_servers("one", [], [AskedServer(port, REQUESTS)], connections, 0.5, rate=rate)


def test_each_connection_asks_again_as_soon_as_it_was_answered() -> None:
    numbers: list[int] = []
    run = load(lambda number: numbers.append(number) or "fine")  # type: ignore[func-returns-value]
    assert len(set(numbers)) == len(numbers) > 4
    assert 0 < run.asks_per_s * 0.45 <= len(numbers)  # the run lasts 0.5 s; its timer may wake a little early
    assert 0 < run.p50_ms <= run.p99_ms <= run.max_ms
    assert (run.errors, run.connections) == (0, 2)


def test_a_wrong_answer_is_an_error_and_no_ask() -> None:
    run = load(lambda number: "wrong" if number == 1 else "fine")
    assert (run.errors, run.first_error) == (1, "wrong")


def test_paced_asks_begin_at_their_rate_and_count_from_when_they_were_due() -> None:
    def answer(number: int) -> str:
        time.sleep(LATE_S if number == 1 else 0)
        return "fine"

    run = load(answer, rate=20, connections=1)
    assert run.asks_per_s == pytest.approx(20)
    assert run.max_ms >= LATE_S * 1000
    assert run.p95_ms > 100  # asks waited for the only connection


def test_a_percentile_is_a_value_and_none_meets_no_goal() -> None:
    assert [percentile(range(1, 101), share) for share in (0.5, 0.95, 1)] == [51, 96, 100]
    assert spread([], 0.5) == ["nan"]
    assert median_ratio([1, 9, 4], [2, 3, 4]) == 1
