"""The desk: pages on which owners manage what is theirs; and the decorators that require a signed-in owner."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate

from django.http import Http404, HttpRequest, HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_http_methods, require_safe

from accounts.authn import Caller
from accounts.error_responses import json_error
from accounts.models import User
from accounts.pages import Args, CallersView, View, require_caller
from agents.models import Agent

OwnerView = Callable[Concatenate[HttpRequest, User, Args], HttpResponseBase]
SIGN_IN = "sign in to see this"


def require_owner(view: OwnerView[Args]) -> View[Args]:
    """Call the view with the signed-in user; other visitors are sent to the sign-in, and back after it."""
    return require_caller(_with_user(view))


def require_owner_json(view: OwnerView[Args]) -> View[Args]:
    """The view for an address that a page's script reads: 401 when no user is signed in."""
    return require_caller(_with_user(view), lambda request: json_error(401, "unauthorized", SIGN_IN))


def owner_read(view: OwnerView[Args]) -> View[Args]:
    """A page or file of the signed-in user that is only read, and not cached."""
    return never_cache(require_safe(require_owner(view)))


def owner_page(view: OwnerView[Args]) -> View[Args]:
    """A page of the signed-in user that is only read, and not cached; it is compressed."""
    return never_cache(gzip_page(require_safe(require_owner(view))))


def owner_form(view: OwnerView[Args]) -> View[Args]:
    """A page of the signed-in user with forms that it gets back by POST; it is not cached."""
    return never_cache(require_http_methods(["GET", "HEAD", "POST"])(require_owner(view)))


def get_own_agent(agent_id: int, owner: User) -> Agent:
    """A kept agent of this owner.

    Raises:
        Http404: it belongs to another user, was deleted, or never existed.
    """
    agents = Agent.objects.kept().owned_by(owner).select_related("owner", "session")
    agent: Agent | None = agents.filter(pk=agent_id).first()
    if agent is None:
        raise Http404
    return agent


def _with_user(view: OwnerView[Args]) -> CallersView[Args]:
    @wraps(view)
    def called(
        request: HttpRequest, caller: Caller, /, *args: Args.args, **kwargs: Args.kwargs
    ) -> HttpResponseBase:
        return view(request, caller.user, *args, **kwargs)

    return called
