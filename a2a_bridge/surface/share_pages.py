"""Pages of shared answers: what a user shares and what others share with the user, one share, and one link.

The page of a share is read by its recipients: it has only the copy that the share keeps, no page of another site
learns its address, and search engines are asked to leave it out.
"""

import json
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from a2a_bridge.models import AnswerShare
from a2a_bridge.service import shares
from accounts.errors import TooFast
from accounts.models import User
from accounts.pages import signed_in, user_page, user_post
from accounts.throttle import check_missed_links, count_missed_link
from kit.filters import page_of

PER_PAGE = 25


@user_page
def shares_page(request: HttpRequest, user: User) -> HttpResponse:
    """`/shares`: what others share with the user, and what the user shares."""
    own = AnswerShare.objects.filter(owner=user).select_related("agent", "user").order_by("-pk").defer("content")
    mine = page_of(request, own, PER_PAGE)
    received = page_of(request, shares.list_received(user.pk), PER_PAGE, "received")
    context = {"mine": mine, "shown": shares.find_shown(mine.object_list), "received": received}
    return render(request, "shares/list.html", context)


@user_post
def end_share(request: HttpRequest, user: User, share_id: int) -> HttpResponse:
    """End a share of the user's."""
    if shares.end_share(user.pk, share_id):
        messages.success(request, "The share has ended: its copy of the answer is deleted.")
    return HttpResponseRedirect(f"{reverse('shares')}#mine")


@never_cache
@gzip_page
@require_safe
def shared(request: HttpRequest, share_id: int) -> HttpResponse:
    """`/shared/{id}`: the answer, for its owner and its recipients; all others get one and the same page."""
    caller = signed_in(request)
    share = shares.find_shared(caller.user.pk, share_id) if caller else None
    if share is None:
        return _private(render(request, "shares/absent.html", {"is_link": False}, status=404))
    return _answer(request, share)


@never_cache
@gzip_page
@require_safe
def shared_link(request: HttpRequest, token: str) -> HttpResponse:
    """`/s/{token}`: the answer of a link, also for visitors who are not signed in."""
    try:
        check_missed_links(request)
    except TooFast as fast:
        page = {"title": "Too many links", "text": f"{str(fast).capitalize()}.", "status": 429}
        answer = render(request, "errors/page.html", page, status=429)
        answer["Retry-After"] = str(fast.retry_in_s)
        return _private(answer)
    share = shares.find_by_link(token)
    if share is None:
        count_missed_link(request)
        return _private(render(request, "shares/absent.html", {"is_link": True}, status=404))
    return _answer(request, share)


def _answer(request: HttpRequest, share: AnswerShare) -> HttpResponse:
    context: dict[str, Any] = {
        "share": share,
        "tasks": json.loads(share.content),
        "is_owner": request.user.pk == share.owner_id,
    }
    return _private(render(request, "shares/answer.html", context))


def _private(answer: HttpResponse) -> HttpResponse:
    """The page with headers that keep its address from search engines and from pages that it links to."""
    answer["X-Robots-Tag"] = "noindex, nofollow"
    answer["Referrer-Policy"] = "no-referrer"
    return answer
