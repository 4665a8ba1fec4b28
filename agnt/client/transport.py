"""The port that sends a request over HTTP; each program fills the port with a library of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A whole answer. `headers`: names in lower case. `body`: as it came, not decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NoAnswer(Exception):
    """No whole answer came; the text says why, and may be shown to the user who gave the URL.

    `was_sent`: the other side may have read the request. `retryable`: another try may succeed.
    """

    def __init__(self, message: str, *, was_sent: bool, retryable: bool = True) -> None:
        super().__init__(message)
        self.was_sent = was_sent
        self.retryable = retryable


class Transport(Protocol):
    """Sends single requests. It follows no redirect, and has no limit of time: its caller cancels it."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, *, max_bytes: int) -> HttpAnswer:
        """The answer to a POST.

        Raises:
            NoAnswer: there is none, or its body is over `max_bytes`.
        """
        ...
