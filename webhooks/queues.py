"""What the sender works on: a table of things to be sent, and how its rows become requests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from django.db.models import QuerySet

from kit import trace
from webhooks.models import Sendable


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One attempt's POST, signed and ready."""

    url: str
    headers: Mapping[str, str]
    body: bytes


def traced(headers: Mapping[str, str], traceparent: str) -> Mapping[str, str]:
    """With a span of this attempt's own, where it tells of something that is part of a trace."""
    return {**headers, trace.HEADER: trace.follow(traceparent)} if traceparent else headers


class Queue(Protocol):
    """One kind of deliveries. `receiver`, `owner`: paths of ids from a row; the sender asks for nothing else.

    `retry_after_s`: the waits between attempts; after the last one the delivery has failed. `each_receiver`: how
    many are under way to one receiver at once. `unreadable`: why there can be no request.
    """

    rows: type[Sendable]
    receiver: str
    owner: str
    retry_after_s: Sequence[float]
    each_receiver: int
    unreadable: str

    def candidates(self, now: datetime) -> QuerySet[Any]:
        """What may be sent now, with its receiver."""

    def request(self, delivery: Any, now: datetime) -> Request | None:
        """In the database's thread: the attempt, signed now; None when a secret of it cannot be read any more."""

    def note(self, delivery: Any, now: datetime, *, is_success: bool, is_exhausted: bool) -> None:
        """In the transaction that writes down how an attempt ended: what it says of the receiver."""
