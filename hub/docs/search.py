"""The search of the documentation: sections of documents, calls of the REST API, and frames of the sockets."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from hub.descriptions.asyncapi import asyncapi
from hub.descriptions.openapi import openapi
from hub.descriptions.page import SOCKETS, operations_of, plain, sockets
from hub.docs.library import pages
from kit.request_threads import be_nice

MAX_FOUND = 30
SNIPPET_CHARS = 180
BEFORE_CHARS = 60
IN_HEADING, IN_PAGE = 20, 5
MAX_IN_TEXT = 4
CALL, FRAME = "REST API", "Socket"

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


@dataclass(frozen=True, slots=True)
class SearchEntry:
    """One place that the search finds. `page`: the title of its page. `kind`: the group of that page."""

    kind: str
    page: str
    heading: str
    address: str
    text: str
    lowered: tuple[str, str, str]

    def weight(self, words: Sequence[str]) -> int:
        """The weight of the entry for the words; 0 if a word does not occur."""
        page, heading, text = self.lowered
        total = 0
        for word in words:
            here = IN_HEADING * (word in heading) + IN_PAGE * (word in page) + min(text.count(word), MAX_IN_TEXT)
            if not here:
                return 0
            total += here
        return total


@dataclass(frozen=True, slots=True)
class SearchHit:
    """An entry, and the part of its text around the first word."""

    entry: SearchEntry
    snippet: str


def search(words: Sequence[str]) -> list[SearchHit]:
    """The entries in which every word occurs, in any case; MAX_FOUND at most."""
    weighed = [(one.weight(words), one) for one in index().entries]
    best = sorted((pair for pair in weighed if pair[0]), key=lambda pair: -pair[0])
    return [SearchHit(one, _snippet(one, words)) for _, one in best[:MAX_FOUND]]


class SearchIndex:
    """The entries of the search, from the same files and descriptions as the pages; built once, when needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: Sequence[SearchEntry] | None = None
        self.building: threading.Thread | None = None

    @property
    def entries(self) -> Sequence[SearchEntry]:
        """The entries of all documents; a request waits while another request builds the index."""
        with self._lock:
            if self._entries is None:
                self._entries = (*_of_documents(), *_of_calls(), *_of_frames())
            return self._entries

    def build_ahead(self) -> None:
        """Build the index in a thread, before a visitor begins to type."""
        if self._entries is None and self.building is None:
            self.building = threading.Thread(target=self._build, name="docs index", daemon=True)
            self.building.start()

    def _build(self) -> None:
        be_nice()
        _ = self.entries


@cache
def index() -> SearchIndex:
    """The index of this process."""
    return SearchIndex()


def with_search(view: View[P]) -> View[P]:
    """Decorate the view of a page that includes `docs/search.html`: the index is built once the page was shown."""

    @wraps(view)
    def show(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        answer = view(request, *args, **kwargs)
        index().build_ahead()
        return answer

    return show


def _of_documents() -> Iterator[SearchEntry]:
    for page in pages().values():
        for one in page.sections:
            address = f"{page.address}#{one.id}" if one.id else page.address
            yield _entry(page.group, page.title, one.heading, address, one.text)


def _of_calls() -> Iterator[SearchEntry]:
    for path, method, operation in operations_of(openapi()):
        tag, parameters = operation["tags"][0], operation.get("parameters", ())
        address = f"{reverse('api-section', args=[tag])}#{operation['operationId']}"
        texts = [plain(operation["summary"]), plain(operation.get("description", ""))]
        text = " ".join([*texts, *(one["name"] for one in parameters)])
        yield _entry(CALL, tag, f"{method.upper()} {path}", address, text)


def _of_frames() -> Iterator[SearchEntry]:
    address = reverse("api-section", args=[SOCKETS])
    for socket in sockets(asyncapi()):
        for direction in socket["directions"]:
            for frame in direction["frames"]:
                text = " ".join([frame["summary"], *(field.name for field in frame["fields"])])
                place = f"{address}#{direction['name']}-{frame['type']}"
                page = f"{socket['path']}, {direction['title'].lower()}"
                yield _entry(FRAME, page, frame["type"], place, text)


def _entry(kind: str, page: str, heading: str, address: str, text: str) -> SearchEntry:
    text = " ".join(text.split())
    return SearchEntry(kind, page, heading, address, text, (page.lower(), heading.lower(), text.lower()))


def _snippet(entry: SearchEntry, words: Sequence[str]) -> str:
    places: list[Any] = [place for word in words if (place := entry.lowered[2].find(word)) >= 0]
    start = max(0, min(places, default=0) - BEFORE_CHARS)
    cut = entry.text[start : start + SNIPPET_CHARS]
    return f"{'…' * bool(start)}{cut}{'…' * (start + SNIPPET_CHARS < len(entry.text))}"
