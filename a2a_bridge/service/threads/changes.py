"""What the caller of a thread may do with it: rename it, archive it, delete it."""

from django.db import transaction

from a2a_bridge.models import MAX_TITLE_CHARS, RecordedExchange, SendKey, StoredTask, Thread
from a2a_bridge.service.exchange_log import delete_exchanges
from a2a_bridge.service.shares import end_shares_of_thread
from a2a_bridge.service.tasks.journal import DELETE_AT_ONCE, delete_tasks
from a2a_bridge.service.threads.indexing import index_of_caller, lock_threads
from a2a_bridge.service.threads.reading import find_under_way
from agents.transcript.callers_files import delete_files_of_thread
from kit import batches
from kit.clock import db_now

WANTED_TITLE = f"want a title of 1 to {MAX_TITLE_CHARS} characters in one line"
UNDER_WAY = "a question of this thread is being answered: cancel it, or wait for its end"


class BadTitle(ValueError):
    """The title is empty, too long, or more than a line; the text says so."""


class StillUnderWay(Exception):
    """Nothing was deleted: a question of the thread is being answered."""


def rename(thread: Thread, title: str) -> None:
    """Give a thread another title.

    Raises:
        BadTitle: nothing was changed.
    """
    title = title.strip()
    if not title or len(title) > MAX_TITLE_CHARS or not title.isprintable():
        raise BadTitle(WANTED_TITLE)
    thread.title = title
    thread.save(update_fields=["title"])


def set_archived(thread: Thread, *, archived: bool) -> None:
    """Take a thread out of the list, or put it back; the next question in it puts it back, too."""
    if archived != (thread.archived_at is not None):
        thread.archived_at = db_now() if archived else None
        thread.save(update_fields=["archived_at"])


def delete(thread: Thread) -> None:
    """Delete a thread with its tasks, the files that its caller sent, and what the hub kept to repeat its answers.

    Its recorded requests and responses are deleted, and what its caller shares of it ends, too. The turns stay:
    they are the records of the agent's owner. A task that is read into the thread meanwhile is deleted with it.

    Raises:
        StillUnderWay: nothing was deleted.
    """
    if find_under_way(thread):
        raise StillUnderWay(UNDER_WAY)
    index_of_caller(thread.caller_id)  # a task that has just ended would become a thread of its own
    while True:
        _delete_tasks(thread)
        delete_exchanges(thread.caller_id, thread.agent_id, thread.context_id)
        if delete_if_without_tasks(thread):
            return


def _delete_tasks(thread: Thread) -> None:
    tasks = StoredTask.objects.filter(of_thread__thread=thread)
    for ids in batches.key_batches(tasks, DELETE_AT_ONCE):
        chat_ids = list(StoredTask.objects.filter(pk__in=ids).values_list("chat_id", flat=True))
        with transaction.atomic():
            SendKey.objects.filter(caller=thread.caller_id, task_id__in=ids).delete()
            RecordedExchange.objects.filter(caller=thread.caller_id, chat_id__in=chat_ids).delete()
            delete_tasks(StoredTask.objects.all(), ids)


@transaction.atomic
def delete_if_without_tasks(thread: Thread) -> bool:
    """Delete the row of the thread, its shares and files; False, and nothing is deleted, if the thread has a task.

    All code that adds a task or a share locks the row first (`indexing`, `shares`).
    """
    held = lock_threads(Thread.objects.filter(pk=thread.pk))
    if held and thread.tasks.exists():
        return False
    end_shares_of_thread(thread)
    delete_files_of_thread(thread.caller_id, thread.agent_id, thread.context_id)
    Thread.objects.filter(pk=thread.pk).delete()
    return True
