"""The pages of threads: the list with its search, and one thread, which can be continued, renamed and deleted."""

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from a2a_bridge import settings
from a2a_bridge.models import MAX_TITLE_CHARS, Thread
from a2a_bridge.service.threads import changes, exporting
from a2a_bridge.service.threads.changes import BadTitle, StillUnderWay
from a2a_bridge.service.threads.listing import (
    ALL,
    ARCHIVED,
    CURRENT,
    find_threads,
    get_thread,
    list_threads,
    threads_agents,
)
from a2a_bridge.service.threads.reading import find_under_way, read_part
from a2a_bridge.surface.pages import my_questions
from a2a_bridge.surface.shown_exchanges import ShownExchange
from a2a_bridge.surface.thread_files import file_of
from accounts.models import User
from accounts.pages import user_page, user_post, user_read
from agents.core.directory import find_askable
from agents.pages.directory import address_of, composer_of
from kit.filters import Filter, Filters, one_of, page_of
from kit.ids import read_row_id

PER_PAGE = 25
PAGE_CHARS = 32_000  # of texts: compressed they have about 12 KB, beside 100 KB of the ask box and its scripts
MAX_WORDS_CHARS = 200
STATE_NAMES = {CURRENT: "current", ARCHIVED: "archived", ALL: "all"}
DELETED = "“{title}” is deleted."


def _read_typed(given: str) -> str:
    words = "".join(each if each.isprintable() else " " for each in given[:MAX_WORDS_CHARS])
    return " ".join(words.split())


DECLARED = (
    Filter("q", _read_typed),
    Filter("agent", _read_typed),
    Filter("state", one_of((ARCHIVED, ALL))),
)


@user_page
def threads(request: HttpRequest, asker: User) -> HttpResponseBase:
    """`/questions`: the threads of the visitor; on a hub that keeps none, single questions."""
    if settings.TASK_STORE != "journal" and not Thread.objects.filter(caller=asker).exists():
        return my_questions(request)
    filters = Filters(request, DECLARED)
    chosen = filters.chosen
    found = find_threads(asker.pk, **{"state": CURRENT, **chosen})
    page = page_of(request, found.rows, PER_PAGE)
    context = {
        "page": page,
        "rows": list_threads(page.object_list, found),
        "filters": filters,
        "agents": threads_agents(asker.pk),
        "states": STATE_NAMES,
        "kept_days": settings.TASKS_KEPT_DAYS,
        "max_chars": MAX_WORDS_CHARS,
    }
    return render(request, "threads/list.html", context)


@user_page
def thread(request: HttpRequest, asker: User, thread_id: str) -> HttpResponse:
    """`/questions/threads/{id}`: the last questions with their answers; `?before=` are earlier ones."""
    return _show(request, _get_own(asker, thread_id))


@user_post
def change(request: HttpRequest, asker: User, thread_id: str) -> HttpResponse:
    """Rename, archive or delete a thread: the form names one `act`."""
    own = _get_own(asker, thread_id)
    act = _ACTS.get(request.POST.get("act", ""))
    if act is None:
        return _show(request, own, "Choose what to do with the thread.", status=400)
    try:
        return act(request, own)
    except BadTitle as bad:
        return _show(request, own, f"The title was not changed: {bad}.", status=400)
    except StillUnderWay as busy:
        return _show(request, own, f"Not deleted: {busy}.", status=409)


@user_read
def export(request: HttpRequest, asker: User, thread_id: str) -> HttpResponseBase:
    """The thread as a file; `?form=` is `markdown` or `json`."""
    own = _get_own(asker, thread_id)
    form = request.GET.get("form", "markdown")
    if form not in exporting.MEDIA_TYPES:
        raise Http404
    return file_of(request, own, form, asker.pk)


def _get_own(asker: User, thread_id: str) -> Thread:
    own = get_thread(asker.pk, thread_id)
    if own is None:
        raise Http404
    return own


def _show(request: HttpRequest, own: Thread, error: str = "", status: int = 200) -> HttpResponse:
    before = read_row_id(request.GET.get("before", ""))
    part = read_part(own, before, chars=PAGE_CHARS)
    agent = find_askable(own.agent.handle, own.caller_id)
    if agent is not None and agent.pk != own.agent_id:  # another agent has the handle now
        agent = None
    context: dict[str, Any] = {
        "thread": own,
        "handle": own.agent.handle,
        "part": part,
        "rows": [ShownExchange(one) for one in part.exchanges],
        "is_last_part": before is None,
        "under_way": find_under_way(own) if before is None else (),
        "error": error,
        "max_title": MAX_TITLE_CHARS,
        "kept_days": settings.TASKS_KEPT_DAYS,
        "is_askable": agent is not None,
        "agent_address": address_of(own.agent),
        **(composer_of(agent, request) if agent is not None else {}),
    }
    return render(request, "threads/thread.html", context, status=status)


def _rename(request: HttpRequest, own: Thread) -> HttpResponse:
    changes.rename(own, request.POST.get("title", ""))
    return _to_page(own)


def _archive(request: HttpRequest, own: Thread) -> HttpResponse:
    changes.set_archived(own, archived=True)
    return _to_page(own)


def _restore(request: HttpRequest, own: Thread) -> HttpResponse:
    changes.set_archived(own, archived=False)
    return _to_page(own)


def _delete(request: HttpRequest, own: Thread) -> HttpResponse:
    changes.delete(own)
    messages.success(request, DELETED.format(title=own.title))
    return HttpResponseRedirect(reverse("questions"))


def _to_page(own: Thread) -> HttpResponse:
    return HttpResponseRedirect(reverse("thread", args=[own.public_id]))


_ACTS: Mapping[str, Callable[[HttpRequest, Thread], HttpResponse]] = {
    "rename": _rename,
    "archive": _archive,
    "restore": _restore,
    "delete": _delete,
}
