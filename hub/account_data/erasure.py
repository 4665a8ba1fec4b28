"""Erasing what a closed account left, in batches. May run twice, and goes on where an earlier run was cut off."""

import logging
import re
from urllib.parse import parse_qsl, urlencode

from django.contrib.admin.models import LogEntry
from django.db import connection

from a2a_bridge.models import SendKey, StoredTask
from accounts.models import User
from agents.models import File, Halt, PermissionRequest, QueuedAsk, Session, Turn
from agents.transcript import files
from agents.transcript.session_deletion import delete_sessions
from agnt.service.networks import find_network
from gateway.models import FrameRecord
from hub.account_data.closure import close
from hub.account_data.scrubbing import Scrubber, UserTraces, find_user_traces, rewrite, scrub_others
from hub.account_data.tables import erased_rows
from kit import batches
from kit.sql import advisory_lock

logger = logging.getLogger(__name__)

ERASING = "erasing"
ERASED = "(erased)"
REPR_CHARS = 200  # what the column takes; the word may be longer than the name
LIST = "a list: "  # and what was searched for, as in an address
NAME = re.compile(r"[\w@/-]+")
WHO_WAS_HALTED = re.compile(r"(?<=\Ahalted )[\w-]+(?='s )")


def erase_closed() -> int:
    """Erase the accounts that were closed and are not erased yet; how many are now. One job at a time does."""
    with advisory_lock(ERASING) as is_alone:
        waiting = User.objects.exclude(former_login="").exclude(closed_at=None)
        return sum(map(_tried, waiting)) if is_alone else 0


def erase_unless_busy(user: User) -> bool:
    """Erase a closed account now; False if the job must do it: it is at it, or a question is open."""
    with advisory_lock(ERASING) as is_alone:
        return is_alone and erase(user)


def _tried(user: User) -> bool:
    """One that fails is tried again with the next run; the others do not wait for it."""
    try:
        return erase(user)
    except Exception:
        logger.exception("account.not_erased", extra={"user_id": user.pk})
        if not connection.is_usable():
            raise  # the advisory lock is released by now
        return False


def erase(user: User) -> bool:
    """Erase all of a closed account but a row without a name, which others' audits point to.

    False: a question of theirs is still open, or waits for its agent; try again when it has ended.
    """
    if not user.former_login:
        return True  # it was done: there is no name to look for
    network = find_network(user)
    if network and not erase(close(network.service_user_id, by_operator=True)):
        return False
    if QueuedAsk.objects.filter(caller=user).exists() or Turn.objects.open().filter(caller=user).exists():
        return False  # in this order: an ask that waits becomes a turn, and its end writes the question once more
    traces = find_user_traces(user)
    scrub_others(user, traces)
    _scrub_acts(traces)
    for ids in batches.key_batches(File.objects.filter(uploader=user).exclude(filename=ERASED)):
        File.objects.filter(pk__in=ids).update(filename=ERASED)  # before others hear that they are deleted
    _delete_asked_of(traces.handles)
    delete_sessions(list(Session.objects.filter(owner=user).values_list("pk", flat=True)))
    _delete_files(user)
    for rows in erased_rows(user):
        batches.delete(rows)
    _make_nameless(user)
    files.sweep_spent()
    User.objects.filter(pk=user.pk).update(former_login="", questions_blanked_to=None, questions_kept_days=None)
    return True


def _make_nameless(user: User) -> None:
    """Keeps in the rows of others that a question was asked and a request decided, without the name."""
    for asked in batches.walk_rows(Turn.objects.filter(caller=user)):
        told = Turn.objects.filter(pk__in=[pk for [pk] in asked]).exclude(question="", context_id="")
        told.update(question="", context_id="")
    Halt.objects.filter(made_by=user).exclude(reason="").update(reason="")
    PermissionRequest.objects.filter(resolver=user).exclude(message="").update(message="")
    user.groups.clear()
    user.user_permissions.clear()


def _delete_files(user: User) -> None:
    """Delete the user's files in sessions of others; a row names its file, so it goes too."""
    for ids in batches.key_batches(File.objects.filter(uploader=user), at_once=files.DELETED_AT_ONCE):
        for file in File.objects.filter(pk__in=ids).select_related("session", "uploader"):
            files.delete(file)
        File.objects.filter(pk__in=ids).delete()


def _delete_asked_of(handles: frozenset[str]) -> None:
    """Delete asks of others to their agents. No index has the handle: each table is read once, in parts."""
    theirs = {handle.lower() for handle in handles}
    for model in (StoredTask, SendKey) if theirs else ():
        for rows in batches.walk_rows(model._default_manager.all(), "handle"):
            keys = [pk for pk, handle in rows if handle.lower() in theirs]
            model._default_manager.filter(pk__in=keys).delete()


def _scrub_acts(traces: UserTraces) -> None:
    """Take their name and their agents' out of what was done in the admin (`accounts.audit_log`), and out of the
    audit of others' frames; the acts and records stay.

    Longer names that contain them stay, too.
    """
    scrubber = Scrubber.of(traces, ERASED)

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
