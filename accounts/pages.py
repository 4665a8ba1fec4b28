"""Signing in and out with a browser."""

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.middleware.csrf import rotate_token
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.browser import own_path, sign_in, sign_out
from accounts.oauth import github
from accounts.tokens import BadLogin, get_or_create_local_user

BAD_LOGIN = "A login is 1 to 39 letters, digits or hyphens, with no hyphen at either end."
SUSPENDED = "{login} is suspended. An operator can lift that in the admin."


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def signin(request: HttpRequest) -> HttpResponse:
    """The way to GitHub; else the development sign-in, where DEV_LOGIN allows it; else how to get in."""
    if github.is_configured():
        next_path = own_path(request.GET.get("next"))
        return render(request, "signin_github.html", {"next_path": next_path, "host": settings.GITHUB_URL})
    if not settings.DEV_LOGIN:
        return render(request, "signin_closed.html", status=503)
    if request.method != "POST":
        return _form(request)
    login = request.POST.get("login", "").strip()
    try:
        user = get_or_create_local_user(login)
    except BadLogin:
        return _form(request, login, BAD_LOGIN, status=400)
    if not user.is_active:
        return _form(request, login, SUSPENDED.format(login=user.login), status=403)
    response = HttpResponseRedirect(own_path(request.POST.get("next")))
    sign_in(request, response, user)
    rotate_token(request)
    return response


@never_cache
@require_POST
def signout(request: HttpRequest) -> HttpResponse:
    """Revoke this browser's session; a copied cookie is worth nothing from now on."""
    response = HttpResponseRedirect(reverse("home"))
    sign_out(request, response)
    messages.success(request, "You are signed out.")
    return response


def _form(request: HttpRequest, login: str = "", error: str = "", *, status: int = 200) -> HttpResponse:
    next_path = own_path(request.POST.get("next") or request.GET.get("next"))
    context = {"login": login, "error": error, "next_path": next_path}
    return render(request, "signin.html", context, status=status)
