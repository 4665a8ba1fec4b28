"""The threads of a caller, the one that was asked last first, and their search (docs/adr/0197)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django.db.models import Count, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Left

from a2a_bridge.models import THREAD_WORDS, Thread, ThreadTask
from a2a_bridge.service.threads.indexing import index_of_caller, word_of
from agents.models import Agent
from kit.full_text import read_words, searches
from kit.ids import read_uuid
from kit.search import filter_by_words

CURRENT, ARCHIVED, ALL = "current", "archived", "all"
STATES = (CURRENT, ARCHIVED, ALL)
NEWEST_FIRST = ("-last_asked_at", "-pk")
WHOLE_AND_BEGUN_WORDS = 2  # the first searches of `kit.full_text.searches`; the others find too much here
PREVIEW_CHARS = 600
HIT_CHARS = 240
BEFORE_HIT_CHARS = 60
MAX_AGENTS = 50
MARKUP = re.compile(r"[*`#|>_~]{1,9}")


@dataclass(frozen=True, slots=True)
class Hit:
    """The place in a thread that a search found: in the newest task with the words. `parts`: (text, is a word)."""

    task_id: str
    is_answer: bool
    parts: Sequence[tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class ListedThread:
    """A thread in a list. `last_answer`: the beginning of its last answer, as Markdown."""

    thread: Thread
    questions: int
    last_answer: str
    hit: Hit | None = None


def get_thread(caller_id: int, public_id: str) -> Thread | None:
    """The thread of this id, if it is the caller's; what became of its last questions is read before."""
    found = read_uuid(public_id)
    if found is None:
        return None
    index_of_caller(caller_id)
    own = Thread.objects.filter(caller=caller_id, public_id=found)
    thread: Thread | None = own.select_related("agent").first()
    return thread


@dataclass(frozen=True, slots=True)
class FoundThreads:
    """The threads that a query finds. `newest`: by thread, the newest of its rows with the searched `words`."""

    rows: QuerySet[Thread]
    words: Sequence[str] = ()
    newest: Mapping[int, int] = field(default_factory=dict)


def find_threads(caller_id: int, *, q: str = "", agent: str = "", state: str = CURRENT) -> FoundThreads:
    """The threads of a caller that have all the words, in their titles or in one question and its answer.

    `agent`: a handle, with or without its `@`. The last questions of the caller are read into threads before.
    """
    index_of_caller(caller_id)
    found = Thread.objects.filter(caller=caller_id).select_related("agent").order_by(*NEWEST_FIRST)
    if state != ALL:
        found = found.filter(archived_at__isnull=state == CURRENT)
    if agent:
        handle = agent.strip().removeprefix("@").lower()
        found = found.filter(agent__handle_key=handle) if handle.isprintable() else found.none()
    if not q.strip():
        return FoundThreads(found)
    words = read_words(q)
    if not words:
        return FoundThreads(found.none())
    named = filter_by_words(Thread.objects.filter(caller=caller_id), "title", words)
    newest = _find_newest(caller_id, q)
    # A caller has at most 10,000 tasks, so these are few enough. The index of words is read once.
    return FoundThreads(found.filter(Q(pk__in=named.values("pk")) | Q(pk__in=list(newest))), words, newest)


def list_threads(threads: Iterable[Thread], found: FoundThreads | None = None) -> list[ListedThread]:
    """These threads, few enough for a page, with what a list shows of each, and the places that a search found."""
    listed = list(threads)
    ids = [one.pk for one in listed]
    tasks = ThreadTask.objects.filter(thread__in=ids)
    counts = dict(tasks.values("thread").annotate(count=Count("pk")).values_list("thread", "count"))
    newest = ThreadTask.objects.filter(thread=OuterRef("pk")).order_by("-asked_at", "-pk")
    begins = newest.annotate(begin=Left("answer", PREVIEW_CHARS)).values("begin")[:1]
    answers = dict(Thread.objects.filter(pk__in=ids).annotate(begin=Subquery(begins)).values_list("pk", "begin"))
    hits = _find_hits(found, ids) if found is not None and found.newest else {}
    return [
        ListedThread(one, counts.get(one.pk, 0), answers.get(one.pk) or "", hits.get(one.pk)) for one in listed
    ]


def threads_agents(caller_id: int) -> list[str]:
    """The handles of agents with which the caller has threads, for a list of suggestions."""
    own = Thread.objects.filter(caller=caller_id).values("agent")
    return list(
        Agent.objects.filter(pk__in=own).order_by("handle_key").values_list("handle", flat=True)[:MAX_AGENTS]
    )


def _find_newest(caller_id: int, q: str) -> dict[int, int]:
    """By thread, the newest row with all these words; if there is none, with words that begin so."""
    steps = searches(ThreadTask.objects.all(), THREAD_WORDS, q, places=word_of(caller_id))
    for found in islice(steps, WHOLE_AND_BEGUN_WORDS):
        said = found.order_by().values("thread").annotate(newest=Max("pk")).values_list("thread", "newest")
        if newest := dict(said):
            return newest
    return {}


def _find_hits(found: FoundThreads, thread_ids: Sequence[int]) -> dict[int, Hit]:
    tasks = ThreadTask.objects.filter(pk__in=[found.newest[one] for one in thread_ids if one in found.newest])
    return {one.thread_id: _hit_of(one, found.words) for one in tasks}


def _hit_of(task: ThreadTask, words: Sequence[str]) -> Hit:
    texts: Mapping[bool, str] = {False: _plain(task.question), True: _plain(task.answer)}
    pattern = re.compile("|".join(rf"\b{re.escape(_stem(word))}\w*" for word in words), re.IGNORECASE)
    places: dict[bool, Any] = {is_answer: pattern.search(text) for is_answer, text in texts.items()}
    is_answer = places[False] is None and places[True] is not None
    text, place = texts[is_answer], places[is_answer]
    start = max(0, place.start() - BEFORE_HIT_CHARS) if place else 0
    start = text.find(" ", start, place.start()) + 1 or start if start and place else 0
    shown = text[start : start + HIT_CHARS]
    parts: list[tuple[str, bool]] = [("…", False)] if start else []
    last = 0
    for match in pattern.finditer(shown):
        parts += [(shown[last : match.start()], False), (match[0], True)]
        last = match.end()
    parts.append((shown[last:] + ("…" if start + HIT_CHARS < len(text) else ""), False))
    return Hit(task.task_id, is_answer, [one for one in parts if one[0]])


def _plain(text: str) -> str:
    """A text in one line without most of its markup."""
    return " ".join(MARKUP.sub(" ", text).split())


def _stem(word: str) -> str:
    """The beginning of a word that its other forms mostly have, too: the index also finds those."""
    return word[:-2] if len(word) > 5 else word
