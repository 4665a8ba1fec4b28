"""Removes a user from the rows of others: their texts are emptied, their name is replaced."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from accounts.models import User
from agents.models import Agent, Event, File, OpMessage, Session, Share, Turn
from kit import batches
from webhooks.models import Delivery

READ_AT_ONCE = 200
KEPT_WORDS = frozenset(
    {"chatId", "routeId", "sessionId", "routingName", "source", "surface", "type", "kind", "ts"}
)
KEPT_WORDS |= {"handle", "peerLogin", "peerRoutingName", "ownerLogin"}  # whose agent it was
NOTHING = "{}"  # all of it was about a session of theirs
MENTIONED = ("chatId", "routeId")


@dataclass(frozen=True, slots=True)
class UserTraces:
    """Login and handles; turns they asked, files they sent; others' sessions that may speak of them, and theirs.

    Sessions of others by row, their own by public id.
    """

    login: str
    handles: frozenset[str]
    chat_ids: frozenset[str]
    file_ids: frozenset[int]
    session_ids: frozenset[int]
    own_sessions: frozenset[str]


def find_user_traces(user: User) -> UserTraces:
    """Collect the traces before the user's own rows are deleted."""
    asked = Turn.objects.filter(caller=user)
    were_asked = Turn.objects.owned_by(user.pk)
    sessions: set[int | None] = set(asked.values_list("session_id", flat=True))
    sessions.update(asked.values_list("source_session_id", flat=True))
    sessions.update(were_asked.values_list("source_session_id", flat=True))
    sessions.update(Share.objects.filter(user=user).values_list("session_id", flat=True))
    sessions.update(OpMessage.objects.filter(author=user).values_list("session_id", flat=True))
    sessions.update(File.objects.filter(uploader=user).values_list("session_id", flat=True))
    return UserTraces(
        login=user.former_login,
        handles=frozenset(Agent.objects.filter(owner=user).values_list("handle", flat=True)),
        chat_ids=frozenset(asked.values_list("chat_id", flat=True)),
        file_ids=frozenset(File.objects.filter(uploader=user).values_list("pk", flat=True)),
        session_ids=frozenset(one for one in sessions if one is not None),
        own_sessions=frozenset(map(str, Session.objects.filter(owner=user).values_list("public_id", flat=True))),
    )


@dataclass(frozen=True, slots=True)
class Scrubber:
    """Takes one user out of JSON: of a turn or file of theirs no words stay, elsewhere their name goes."""

    traces: UserTraces
    instead: str
    _names: re.Pattern[str]

    @classmethod
    def of(cls, traces: UserTraces, instead: str) -> "Scrubber":
        """`instead`: the name that is left."""
        login = re.escape(traces.login)
        names = [
            rf"@{login}(?:/[\w-]+)?(?![\w-])",
            *(rf"(?<![\w-]){re.escape(one)}(?![\w-])" for one in traces.handles),
        ]
        return cls(traces, instead, re.compile("|".join([rf"\A{login}\Z", *names]), re.IGNORECASE))

    def text(self, text: str) -> str:
        """A text without their name."""
        return self._names.sub(self.instead, text)

    def payload(self, text: str) -> str:
        """JSON without them; the same text when they are not in it."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return self.text(text)
        if isinstance(value, dict) and value.get("sessionId") in self.traces.own_sessions:
            return NOTHING
        clean = self._clean(value, is_theirs=self._is_theirs(value))
        return text if clean == value else json.dumps(clean, ensure_ascii=False)

    def _is_theirs(self, value: Any) -> bool:
        if isinstance(value, list):
            return any(map(self._is_theirs, value))
        if not isinstance(value, dict):
            return False
        turns, file_id = {str(value.get(name)) for name in MENTIONED}, value.get("fileId")
        is_of_file = isinstance(file_id, int) and file_id in self.traces.file_ids
        return is_of_file or bool(turns & self.traces.chat_ids) or any(map(self._is_theirs, value.values()))

    def _clean(self, value: Any, *, is_theirs: bool, name: str = "") -> Any:
        match value:
            case dict():
                return {key: self._clean(inner, is_theirs=is_theirs, name=key) for key, inner in value.items()}
            case list():
                return [self._clean(inner, is_theirs=is_theirs, name=name) for inner in value]
            case str():
                without_name = self.text(value)
                is_word = is_theirs and name not in KEPT_WORDS and without_name == value
                return "" if is_word else without_name
        return value


def scrub_others(user: User, traces: UserTraces) -> None:
    """In transcripts of the sessions that may speak of them, and in what was told of those to webhooks."""
    scrubber = Scrubber.of(traces, user.login)
    others = Q(session__in=traces.session_ids) & ~Q(session__owner=user)
    rewrite(Event.objects.filter(others), "payload", scrubber.payload)
    rewrite(OpMessage.objects.filter(others), "text", scrubber.text)
    for message in OpMessage.objects.filter(others, mentions__icontains=traces.login):
        message.mentions = [scrubber.text(one) for one in message.mentions]
        message.save(update_fields=["mentions"])
    heard = Q(subscription__owner__agent_sessions__in=traces.session_ids)
    heard |= Q(subscription__owner__shares__session__in=traces.session_ids)
    heard |= Q(subscription__owner__shares__session__owner=user)
    listening = Delivery.objects.filter(heard).exclude(subscription__owner=user).values("pk")
    rewrite(Delivery.objects.filter(pk__in=listening), "payload", scrubber.payload)


def rewrite(rows: QuerySet[Any], column: str, clean: Callable[[str], str]) -> None:
    """Clean a column of these rows, a few at a time."""
    for batch in batches.walk_rows(rows, column, at_once=READ_AT_ONCE):
        for pk, text in batch:
            if (kept := clean(text)) != text:
                rows.model._default_manager.filter(pk=pk).update(**{column: kept})
