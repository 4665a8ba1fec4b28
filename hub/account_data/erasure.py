"""Closes an account, and erases in batches what a closed account left.

The erasure may run twice, and goes on where an earlier run was cut off.
"""

import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.contrib.admin.models import LogEntry
from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from a2a_bridge.models import SendKey, StoredTask, ThreadTask
from accounts.groups import last_maintained
from accounts.models import (
    ClientGrant,
    Credential,
    Invitation,
    Membership,
    Passkey,
    ProviderIdentity,
    ScimGroup,
    ScimUser,
    User,
)
from agents.models import Agent, Event, File, Halt, OpMessage, PermissionRequest, QueuedAsk, Session, Share, Turn
from agents.transcript import files
from agents.transcript.session_deletion import delete_sessions
from agnt.models import Venue
from agnt.service.networks import find_network
from gateway.models import FrameRecord
from hub.account_data.tables import erased_rows
from kit import batches
from kit.clock import db_now
from kit.full_text import forget_deleted_words
from kit.ids import unguessable
from kit.sql import advisory_lock
from webhooks.models import Delivery

logger = logging.getLogger(__name__)

FREED_LOGIN = "erased-"  # the beginning of the login of a closed account
ERASING = "erasing"
ERASED = "(erased)"
REPR_CHARS = 200  # the size of the column; the replacement may be longer than the name
LIST = "a list: "  # followed by the search as a query string
NAME = re.compile(r"[\w@/-]+")
WHO_WAS_HALTED = re.compile(r"(?<=\Ahalted )[\w-]+(?='s )")
READ_AT_ONCE = 200
KEPT_WORDS = frozenset(
    {"chatId", "routeId", "sessionId", "routingName", "source", "surface", "type", "kind", "ts"}
)
# The names of the asked agent and its owner.
KEPT_WORDS |= {"handle", "peerLogin", "peerRoutingName", "ownerLogin"}
NOTHING = "{}"  # for a payload that is about a session of the user
MENTIONED = ("chatId", "routeId")
SEARCHED = (Agent, Venue, ThreadTask)


LAST_MAINTAINER = "the last maintainer of @{group} cannot be erased: make another one, or erase the group first"


class CannotClose(Exception):
    """The account was not closed; the text says why."""


@dataclass(frozen=True, slots=True)
class UserTraces:
    """The names and ids by which rows of others refer to a user.

    `chat_ids`: of turns that the user asked; `file_ids`: of files that the user sent; `session_ids`: of sessions
    of others that may mention the user; `own_sessions`: public ids of the user's sessions.
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


class Scrubber:
    """Removes one user from texts and JSON.

    The scrubber removes all texts of the user's turns and files, and the user's name elsewhere.

    `instead`: the text that replaces the name.
    """

    def __init__(self, traces: UserTraces, instead: str) -> None:
        self._traces, self._instead = traces, instead
        login = re.escape(traces.login)
        names = [
            rf"@{login}(?:/[\w-]+)?(?![\w-])",
            *(rf"(?<![\w-]){re.escape(one)}(?![\w-])" for one in traces.handles),
        ]
        self._names = re.compile("|".join([rf"\A{login}\Z", *names]), re.IGNORECASE)

    def text(self, text: str) -> str:
        """The text without the user's name."""
        return self._names.sub(self._instead, text)

    def payload(self, text: str) -> str:
        """The JSON without the user; the same text if the user does not occur in it."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return self.text(text)
        if isinstance(value, dict) and value.get("sessionId") in self._traces.own_sessions:
            return NOTHING
        clean = self._clean(value, is_theirs=self._is_theirs(value))
        return text if clean == value else json.dumps(clean, ensure_ascii=False)

    def _is_theirs(self, value: Any) -> bool:
        if isinstance(value, list):
            return any(map(self._is_theirs, value))
        if not isinstance(value, dict):
            return False
        turns, file_id = {str(value.get(name)) for name in MENTIONED}, value.get("fileId")
        is_of_file = isinstance(file_id, int) and file_id in self._traces.file_ids
        return is_of_file or bool(turns & self._traces.chat_ids) or any(map(self._is_theirs, value.values()))

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


@transaction.atomic
def close(user_id: int, *, by_operator: bool = False) -> User:
    """Refuse an account's tokens, close its sockets, unpublish its agents, free its login and accounts elsewhere.

    The former login is kept until the rest is erased. Closing a closed account does nothing.

    Raises:
        CannotClose: the hub would have no administrator left, or a group no maintainer; or an administrator halted
            the user, who would return with the same GitHub account as a new user, and the hub's operator did not
            ask.
    """
    administrators = User.objects.lock_administrators()
    user = User.objects.select_for_update(no_key=True).get(pk=user_id)
    if user.closed_at is not None:
        return user
    if administrators == {user.pk}:
        raise CannotClose("the last administrator cannot be erased: make another one first")
    if groups := last_maintained(user):
        raise CannotClose(LAST_MAINTAINER.format(group=groups[0].slug))
    if not by_operator and Halt.objects.active().filter(by_staff=True, user=user).exists():
        raise CannotClose("an administrator halted this account: ask them to erase it")
    ClientGrant.objects.filter(user=user).revoke()
    Credential.objects.filter(Q(user=user) | Q(minted_by=user)).revoke()
    Credential.objects.filter(acts_for=user).update(acts_for=None)
    Membership.objects.filter(Q(user=user) | Q(group__account=user)).delete()
    Agent.objects.owned_by(user).kept().update(deleted_at=Now(), status=Agent.Status.DRAFT)
    for model in (ProviderIdentity, Passkey, ScimUser):
        model.objects.filter(user=user).delete()
    ScimGroup.objects.filter(group__account=user).delete()
    Invitation.objects.filter(Q(user=user) | Q(made_by=user) | Q(login__iexact=user.login)).delete()
    user.former_login, user.login = user.login, unguessable(FREED_LOGIN)
    user.github_id, user.avatar_url, user.password = None, "", ""
    user.is_active = user.is_staff = user.is_superuser = False
    user.closed_at = db_now()
    user.save()
    return user


def erase_closed() -> int:
    """Erase the accounts that were closed and are not erased yet; returns their number.

    Only one job at a time runs this.
    """
    with advisory_lock(ERASING) as is_alone:
        waiting = User.objects.exclude(former_login="").exclude(closed_at=None)
        return sum(map(_tried, waiting)) if is_alone else 0


def erase_unless_busy(user: User) -> bool:
    """Erase a closed account now; False if the job must do it: the job runs now, or a question is open."""
    with advisory_lock(ERASING) as is_alone:
        return is_alone and erase(user)


def _tried(user: User) -> bool:
    """Erase an account. A failure is logged, and the next run tries again; other accounts do not wait for it."""
    try:
        return erase(user)
    except Exception:
        logger.exception("account.not_erased", extra={"user_id": user.pk})
        if not connection.is_usable():
            raise  # the lost connection has released the advisory lock
        return False


def erase(user: User) -> bool:
    """Erase a closed account, except its row without a name, to which the audits of others refer.

    False: a question of the user is still open, or waits for its agent; try again when it has ended.
    """
    if not user.former_login:
        return True  # the account was erased before
    network = find_network(user)
    if network and not erase(close(network.service_user_id, by_operator=True)):
        return False
    if QueuedAsk.objects.filter(caller=user).exists() or Turn.objects.open().filter(caller=user).exists():
        # Queued asks first: a queued ask may become a turn meanwhile, and the end of a turn writes its question
        # again.
        return False
    traces = find_user_traces(user)
    scrub_others(user, traces)
    _scrub_acts(traces)
    for ids in batches.key_batches(File.objects.filter(uploader=user).exclude(filename=ERASED)):
        # Before other users are notified that the files are deleted.
        File.objects.filter(pk__in=ids).update(filename=ERASED)
    _delete_asked_of(traces.handles)
    delete_sessions(list(Session.objects.filter(owner=user).values_list("pk", flat=True)))
    _delete_files(user)
    for rows in erased_rows(user):
        batches.delete(rows)
    for model in SEARCHED:
        forget_deleted_words(model.full_text)
    _make_nameless(user)
    files.sweep_spent()
    User.objects.filter(pk=user.pk).update(former_login="", questions_blanked_to=None, questions_kept_days=None)
    return True


def _make_nameless(user: User) -> None:
    """Blank the user's texts in rows that others keep, such as questions and the messages of decisions."""
    for asked in batches.walk_rows(Turn.objects.filter(caller=user)):
        asked_turns = Turn.objects.filter(pk__in=[pk for [pk] in asked]).exclude(
            question="", context_id="", failure_text=None
        )
        asked_turns.update(question="", context_id="", failure_text=None)
    Halt.objects.filter(made_by=user).exclude(reason="").update(reason="")
    PermissionRequest.objects.filter(resolver=user).exclude(message="").update(message="")
    user.groups.clear()
    user.user_permissions.clear()


def _delete_files(user: User) -> None:
    """Delete the user's files in sessions of others, also their rows, because a row holds the file's name."""
    for ids in batches.key_batches(File.objects.filter(uploader=user), at_once=files.DELETED_AT_ONCE):
        for file in File.objects.filter(pk__in=ids).select_related("session", "uploader"):
            files.delete(file)
        File.objects.filter(pk__in=ids).delete()


def _delete_asked_of(handles: frozenset[str]) -> None:
    """Delete asks of others to their agents. No index covers the handle, so each table is read once, in parts."""
    theirs = {handle.lower() for handle in handles}
    for model in (StoredTask, SendKey) if theirs else ():
        for rows in batches.walk_rows(model._default_manager.all(), "handle"):
            keys = [pk for pk, handle in rows if handle.lower() in theirs]
            model._default_manager.filter(pk__in=keys).delete()


def _scrub_acts(traces: UserTraces) -> None:
    """Remove the names of the user and of their agents from the log of the admin (`accounts.audit_log`) and from
    the frame audit of others; the entries stay.

    Longer names that contain one of these names stay, too.
    """
    scrubber = Scrubber(traces, ERASED)

    def message(text: str) -> str:
        if text.startswith(LIST):
            return LIST + _searched(scrubber, text.removeprefix(LIST))
        return WHO_WAS_HALTED.sub(lambda name: scrubber.text(name[0]), scrubber.text(text))

    rewrite(FrameRecord.objects.filter(destination__startswith="@"), "destination", scrubber.text)
    rewrite(LogEntry.objects.all(), "object_repr", lambda text: scrubber.text(text)[:REPR_CHARS])
    rewrite(LogEntry.objects.all(), "change_message", message)


def _searched(scrubber: Scrubber, query: str) -> str:
    asked = parse_qsl(query, keep_blank_values=True)
    clean = [(key, NAME.sub(lambda name: scrubber.text(name[0]), value)) for key, value in asked]
    return query if clean == asked else urlencode(clean, safe="()@/")


def scrub_others(user: User, traces: UserTraces) -> None:
    """Scrub transcripts of the sessions that may mention the user, and webhook deliveries about those sessions."""
    scrubber = Scrubber(traces, user.login)
    others = Q(session__in=traces.session_ids) & ~Q(session__owner=user)
    rewrite(Event.objects.filter(others), "payload", scrubber.payload)
    rewrite(OpMessage.objects.filter(others), "text", scrubber.text)
    for message in OpMessage.objects.filter(others, mentions__icontains=traces.login):
        message.mentions = [scrubber.text(one) for one in message.mentions]
        message.save(update_fields=["mentions"])
    informed = Q(subscription__owner__agent_sessions__in=traces.session_ids)
    informed |= Q(subscription__owner__shares__session__in=traces.session_ids)
    informed |= Q(subscription__owner__shares__session__owner=user)
    informing = Delivery.objects.filter(informed).exclude(subscription__owner=user).values("pk")
    rewrite(Delivery.objects.filter(pk__in=informing), "payload", scrubber.payload)


def rewrite(rows: QuerySet[Any], column: str, clean: Callable[[str], str]) -> None:
    """Clean a column of these rows, a few at a time."""
    for batch in batches.walk_rows(rows, column, at_once=READ_AT_ONCE):
        for pk, text in batch:
            if (kept := clean(text)) != text:
                rows.model._default_manager.filter(pk=pk).update(**{column: kept})
