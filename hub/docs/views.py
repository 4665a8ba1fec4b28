"""`/docs`: guides and reference of the hub, and the search over them, the API and the sockets."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from hub.docs.library import groups, pages
from hub.docs.search import MOST_FOUND, search, with_search

MAX_CHARS = 200
MAX_WORDS = 6


@never_cache
@gzip_page
@require_safe
@with_search
def docs(request: HttpRequest) -> HttpResponse:
    """The contents; with `?q=` the sections that have all words of the query, the best first."""
    typed = request.GET.get("q", "")[:MAX_CHARS]
    words = typed.lower().split()[:MAX_WORDS]
    found = search(words) if words else []
    context = {"groups": list(groups()), "typed": typed, "words": words, "found": found, "most": MOST_FOUND}
    return render(request, "docs/home.html", context)


@never_cache
@gzip_page
@require_safe
@with_search
def docs_page(request: HttpRequest, name: str) -> HttpResponse:
    """One document."""
    page = pages().get(name)
    if page is None:
        raise Http404
    headings = [one for one in page.document.sections if one.level == 2]
    siblings = next(listed for group, listed in groups() if group == page.group)
    return render(request, "docs/page.html", {"page": page, "headings": headings, "siblings": siblings})
