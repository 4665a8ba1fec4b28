"""Who comes to the desk, and what they may open there."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import Http404, HttpRequest, HttpResponseBase

from accounts.error_pages import json_error
from accounts.models import User
from accounts.oauth.pages import signed_in, to_signin
from agents.models import Agent

Args = ParamSpec("Args")
View = Callable[Concatenate[HttpRequest, Args], HttpResponseBase]
OwnersView = Callable[Concatenate[HttpRequest, User, Args], HttpResponseBase]
SIGN_IN = "sign in to see this"


def for_owner(view: OwnersView[Args]) -> View[Args]:
    """The view with the visitor, who signs in first where needed, then comes back."""
    return _with_visitor(view, to_signin)


def json_for_owner(view: OwnersView[Args]) -> View[Args]:
    """The same for what a script of a page reads: 401 tells it that the visitor is signed out."""
    return _with_visitor(view, lambda request: json_error(401, "unauthorized", SIGN_IN))


def own_agent(agent_id: int, owner: User) -> Agent:
    """A kept agent of this owner's.

    Raises:
        Http404: it is somebody else's, deleted, or was never there.
    """
    agents = Agent.objects.kept().owned_by(owner).select_related("owner", "session")
    agent: Agent | None = agents.filter(pk=agent_id).first()
    if agent is None:
        raise Http404
    return agent


def _with_visitor(view: OwnersView[Args], turn_away: Callable[[HttpRequest], HttpResponseBase]) -> View[Args]:
    @wraps(view)
    def guarded(request: HttpRequest, /, *args: Args.args, **kwargs: Args.kwargs) -> HttpResponseBase:
        caller = signed_in(request)
        return turn_away(request) if caller is None else view(request, caller.user, *args, **kwargs)

    return guarded
