"""How much hangs on a session: what deleting it would take away."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet, Sum

from agents.models import Agent, Event, File, OpMessage, PermissionRequest, Session, Share, Turn

MOST_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Number:
    """So many of something; counted no further than MOST_COUNTED."""

    name: str
    count: int

    @property
    def is_more(self) -> bool:
        """Whether there are more than were counted."""
        return self.count >= MOST_COUNTED


def numbers(session: Session) -> Iterator[Number]:
    """What hangs on a session, kind by kind."""
    kinds: list[tuple[str, QuerySet[Any]]] = [
        ("events", Event.objects.filter(session=session)),
        ("messages between operators", OpMessage.objects.filter(session=session)),
        ("questions to its agent, in the audit", Turn.objects.filter(agent__session=session)),
        ("permission requests", PermissionRequest.objects.filter(session=session)),
        ("files", File.objects.filter(session=session)),
        ("people it is shared with", Share.objects.filter(session=session)),
        ("agents published on it", Agent.objects.filter(session=session)),
    ]
    for name, rows in kinds:
        yield Number(name, rows[:MOST_COUNTED].count())


def bytes_of_files(session: Session) -> int:
    """The size of its live files; bytes that other sessions' files share stay when it goes."""
    total = File.objects.live().filter(session=session).aggregate(total=Sum("size"))["total"]
    return int(total or 0)
