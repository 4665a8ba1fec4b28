"""Pages of accounts; and the decorators of pages for signed-in users and for the staff, for all apps."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.acting import find_acted_for, record_act_for_group
from accounts.authn import Caller, find_caller
from accounts.error_responses import json_error
from accounts.models import User

Args = ParamSpec("Args")
View = Callable[Concatenate[HttpRequest, Args], HttpResponseBase]
UserView = Callable[Concatenate[HttpRequest, User, Args], HttpResponseBase]
BAD_REQUEST = 400
SIGN_IN = "sign in to see this"


def signed_in(request: HttpRequest) -> Caller | None:
    """The caller, by the session of a browser; a token does not open pages."""
    caller = find_caller(request)
    return caller if caller is not None and caller.identity.kind == "session" else None


def to_signin(request: HttpRequest) -> HttpResponse:
    """A redirect to the sign-in, which leads back to this page."""
    return HttpResponseRedirect(f"{reverse('signin')}?{urlencode({'next': request.get_full_path()})}")


def require_user(
    view: UserView[Args],
    refuse: Callable[[HttpRequest], HttpResponseBase] = to_signin,
    *,
    is_for: Callable[[User], bool] = lambda user: True,
    acts: bool = False,
) -> View[Args]:
    """Call the view with the signed-in user if the page is for this user; others get the response of `refuse`.

    `acts`: the view gets the account of the group for which the user acts, if any, and a POST is recorded.
    """

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: Args.args, **kwargs: Args.kwargs) -> HttpResponseBase:
        caller = signed_in(request)
        if caller is None or not is_for(caller.user):
            return refuse(request)
        account = (find_acted_for(caller) if acts else None) or caller.user
        response = view(request, account, *args, **kwargs)
        if request.method == "POST" and response.status_code < BAD_REQUEST:
            record_act_for_group(request, account)
        return response

    return guarded


def absent(request: HttpRequest) -> HttpResponseBase:
    """Respond 404, to hide a page from a visitor."""
    raise Http404


def user_read(view: UserView[Args]) -> View[Args]:
    """A page or file of the signed-in user that is only read, and not cached."""
    return never_cache(require_safe(require_user(view)))


def user_page(view: UserView[Args]) -> View[Args]:
    """A page of the signed-in user that is only read, and not cached; it is compressed."""
    return never_cache(gzip_page(require_safe(require_user(view))))


def user_part(view: UserView[Args]) -> View[Args]:
    """A part of a page, for its script: a visitor who is not signed in gets 404."""
    return never_cache(gzip_page(require_safe(require_user(view, absent))))


def user_json(view: UserView[Args]) -> View[Args]:
    """Data for the script of a page: a visitor who is not signed in gets 401."""
    return never_cache(require_safe(require_user(view, _ask_to_sign_in)))


def user_form(view: UserView[Args]) -> View[Args]:
    """A page of the signed-in user whose forms are posted to itself; it is not cached."""
    return never_cache(require_http_methods(["GET", "HEAD", "POST"])(require_user(view)))


def user_post(view: UserView[Args]) -> View[Args]:
    """The target of a form on a page of the signed-in user."""
    return never_cache(require_POST(require_user(view)))


def owner_read(view: UserView[Args]) -> View[Args]:
    """Like `user_read`, for the group for which the user acts, if any."""
    return never_cache(require_safe(require_user(view, acts=True)))


def owner_page(view: UserView[Args]) -> View[Args]:
    """Like `user_page`, for the group for which the user acts, if any."""
    return never_cache(gzip_page(require_safe(require_user(view, acts=True))))


def owner_json(view: UserView[Args]) -> View[Args]:
    """Like `user_json`, for the group for which the user acts, if any."""
    return never_cache(require_safe(require_user(view, _ask_to_sign_in, acts=True)))


def owner_form(view: UserView[Args]) -> View[Args]:
    """Like `user_form`, for the group for which the user acts, if any."""
    return never_cache(require_http_methods(["GET", "HEAD", "POST"])(require_user(view, acts=True)))


def owner_post(view: UserView[Args]) -> View[Args]:
    """Like `user_post`, for the group for which the user acts, if any."""
    return never_cache(require_POST(require_user(view, acts=True)))


def staff_page(view: UserView[Args]) -> View[Args]:
    """A page of the staff that is only read, and not cached; it is compressed. Other visitors get 404."""
    return never_cache(gzip_page(require_safe(_require_staff(view))))


def staff_form(view: UserView[Args]) -> View[Args]:
    """A page of the staff whose forms are posted to itself. Other visitors get 404."""
    return never_cache(require_http_methods(["GET", "HEAD", "POST"])(_require_staff(view)))


def staff_post(view: UserView[Args]) -> View[Args]:
    """The target of a form on a page of the staff. Other visitors get 404."""
    return never_cache(require_POST(_require_staff(view)))


def _require_staff(view: UserView[Args]) -> View[Args]:
    return require_user(view, absent, is_for=lambda user: user.is_staff)


def _ask_to_sign_in(request: HttpRequest) -> HttpResponseBase:
    return json_error(401, "unauthorized", SIGN_IN)
