"""`/docs`: guides and reference of the hub, and the search over them, the API and the sockets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from hub.descriptions.asyncapi import asyncapi
from hub.descriptions.openapi import openapi
from hub.descriptions.page import SOCKETS, sections, sockets
from hub.docs.library import groups, pages

MAX_CHARS = 200
MAX_WORDS = 6
MOST_FOUND = 30
SNIPPET_CHARS = 180
BEFORE_CHARS = 60
IN_HEADING, IN_PAGE = 20, 5
MOST_IN_TEXT = 4
CALL, FRAME = "REST API", "Socket"


@dataclass(frozen=True, slots=True)
class Entry:
    """One place that the search finds. `page`: the title of its page, `kind`: the group of that."""

    kind: str
    page: str
    heading: str
    address: str
    text: str
    lowered: tuple[str, str, str]

    def weight(self, words: Sequence[str]) -> int:
        """How well the words suit it; 0 if one does not occur."""
        page, heading, text = self.lowered
        total = 0
        for word in words:
            here = IN_HEADING * (word in heading) + IN_PAGE * (word in page) + min(text.count(word), MOST_IN_TEXT)
            if not here:
                return 0
            total += here
        return total


@dataclass(frozen=True, slots=True)
class Found:
    """An entry, and the part of its text around the first word."""

    entry: Entry
    snippet: str


@never_cache
@gzip_page
@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """The contents; with `?q=` the sections that have all its words, the best first."""
    typed = request.GET.get("q", "")[:MAX_CHARS]
    words = typed.lower().split()[:MAX_WORDS]
    found = search(words) if words else []
    context = {"groups": list(groups()), "typed": typed, "words": words, "found": found, "most": MOST_FOUND}
    return render(request, "docs/home.html", context)


@never_cache
@gzip_page
@require_safe
def docs_page(request: HttpRequest, name: str) -> HttpResponse:
    """One document."""
    page = pages().get(name)
    if page is None:
        raise Http404
    headings = [one for one in page.document.sections if one.level == 2]
    siblings = next(listed for group, listed in groups() if group == page.group)
    return render(request, "docs/page.html", {"page": page, "headings": headings, "siblings": siblings})


def search(words: Sequence[str]) -> list[Found]:
    """The entries in which every word occurs, in any case; MOST_FOUND at most."""
    weighed = [(one.weight(words), one) for one in entries()]
    best = sorted((pair for pair in weighed if pair[0]), key=lambda pair: -pair[0])
    return [Found(one, _snippet(one, words)) for _, one in best[:MOST_FOUND]]


@cache
def entries() -> Sequence[Entry]:
    """The index, made of the same files and descriptions as the pages."""
    return (*_of_documents(), *_of_calls(), *_of_frames())


def _of_documents() -> Iterator[Entry]:
    for page in pages().values():
        for one in page.document.sections:
            address = f"{page.address}#{one.id}" if one.id else page.address
            yield _entry(page.group, page.document.title, one.heading, address, one.text)


def _of_calls() -> Iterator[Entry]:
    for section in sections(openapi()):
        for call in section.calls:
            address = f"{reverse('api-section', args=[section.tag])}#{call.name}"
            text = " ".join([call.summary, call.text, *(field.name for field in call.parameters)])
            yield _entry(CALL, section.tag, f"{call.method} {call.path}", address, text)


def _of_frames() -> Iterator[Entry]:
    address = reverse("api-section", args=[SOCKETS])
    for socket in sockets(asyncapi()):
        for direction in socket.directions:
            for frame in direction.frames:
                text = " ".join([frame.summary, *(field.name for field in frame.fields)])
                place = f"{address}#{direction.name}-{frame.type}"
                yield _entry(FRAME, f"{socket.path}, {direction.title.lower()}", frame.type, place, text)


def _entry(kind: str, page: str, heading: str, address: str, text: str) -> Entry:
    text = " ".join(text.split())
    return Entry(kind, page, heading, address, text, (page.lower(), heading.lower(), text.lower()))


def _snippet(entry: Entry, words: Sequence[str]) -> str:
    places: list[Any] = [place for word in words if (place := entry.lowered[2].find(word)) >= 0]
    start = max(0, min(places, default=0) - BEFORE_CHARS)
    cut = entry.text[start : start + SNIPPET_CHARS]
    return f"{'…' * bool(start)}{cut}{'…' * (start + SNIPPET_CHARS < len(entry.text))}"
