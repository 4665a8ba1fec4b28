"""Pages of accounts; and the guard of pages for a signed-in user."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from accounts.authn import Caller, find_caller

Args = ParamSpec("Args")
View = Callable[Concatenate[HttpRequest, Args], HttpResponseBase]
CallersView = Callable[Concatenate[HttpRequest, Caller, Args], HttpResponseBase]


def signed_in(request: HttpRequest) -> Caller | None:
    """Only the session of a browser may decide here, not a token."""
    caller = find_caller(request)
    return caller if caller is not None and caller.identity.kind == "session" else None


def to_signin(request: HttpRequest) -> HttpResponse:
    """Sign in first, then come back."""
    return HttpResponseRedirect(f"{reverse('signin')}?{urlencode({'next': request.get_full_path()})}")


def require_caller(
    view: CallersView[Args], refuse: Callable[[HttpRequest], HttpResponseBase] = to_signin
) -> View[Args]:
    """Call the view with the signed-in caller; other visitors are sent to the sign-in, and back after it."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: Args.args, **kwargs: Args.kwargs) -> HttpResponseBase:
        caller = signed_in(request)
        return refuse(request) if caller is None else view(request, caller, *args, **kwargs)

    return guarded
