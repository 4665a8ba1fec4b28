"""Pages of invitations: the staff makes links, and a link leads to the page that sets up an account."""

import json

from django.contrib import messages
from django.contrib.auth.hashers import make_password
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from accounts import audit_log, invitations, settings
from accounts.browser import device_name, sign_in
from accounts.errors import SignInRefused, TooFast
from accounts.invitations import CannotInvite, Invited
from accounts.models import Invitation, User
from accounts.pages import staff_form, staff_post
from accounts.pages.sign_in import MAX_PASSWORD_CHARS
from accounts.passkeys import BAD_PASSKEY, BadPasskey, check_registration, passkeys_work, registration_options
from accounts.throttle import check_address
from accounts.tokens import BAD_LOGIN, BadLogin
from kit.clock import db_now

LISTED = 100
TOO_LONG = f"Use at most {MAX_PASSWORD_CHARS} characters."
PASSWORDS_DIFFER = "The two passwords differ."


@never_cache
@sensitive_post_parameters("password", "again")
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """Set up an account by its link: with a passkey, or with a password."""
    try:
        check_address(request, "invitation")
        invitation = invitations.find(token)
        if request.method != "POST":
            return _join_page(request, token, invitation)
        if answer := request.POST.get("credential"):
            passkey = check_registration(answer, invitations.challenge_of(token))
            passkey.name = device_name(request.headers.get("User-Agent", ""))

            def keep_passkey(user: User) -> None:
                passkey.user = user
                user.set_unusable_password()
                user.save(update_fields=["password"])
                try:
                    with transaction.atomic():
                        passkey.save()
                except IntegrityError:  # a concurrent request stored the same passkey
                    raise BadPasskey(BAD_PASSKEY) from None

            user = invitations.redeem(token, keep_passkey)
        else:
            password = request.POST.get("password", "")
            if problems := _problems(request, invitation.login, password):
                return _join_page(request, token, invitation, problems, status=400)

            # Hashing is slow: not in a transaction, which has SQLite's write lock.
            hashed = make_password(password)

            def keep_password(user: User) -> None:
                user.password = hashed
                user.save(update_fields=["password"])

            user = invitations.redeem(token, keep_password)
    except invitations.NoInvitation as gone:
        return _no_link(request, str(gone), 404)
    except TooFast as fast:
        return _no_link(request, f"{str(fast).capitalize()}.", 429)
    except invitations.NameTaken as taken:
        return _no_link(request, str(taken), 409)
    except SignInRefused as refused:
        return _join_page(request, token, invitation, [f"{str(refused).capitalize()}."], status=400)
    response = HttpResponseRedirect(reverse("home"))
    sign_in(request, response, user)
    return response


@staff_form
def invite(request: HttpRequest, staff: User) -> HttpResponse:
    """Open invitations; a POST makes an invitation and shows its link once."""
    if request.method != "POST":
        return _invite_page(request)
    login = request.POST.get("login", "").strip()
    try:
        invited = invitations.invite(login, is_admin="admin" in request.POST, made_by=staff)
    except BadLogin:
        return _invite_page(request, login=login, error=BAD_LOGIN, status=400)
    except CannotInvite as cannot:
        return _invite_page(request, login=login, error=f"{cannot}.", status=400)
    return _invite_page(request, invited=invited)


@staff_post
def revoke_invitation(request: HttpRequest, staff: User, invitation_id: int) -> HttpResponse:
    """Revoke the link of an open invitation."""
    found = list(invitations.open_now().filter(pk=invitation_id))
    if found:
        Invitation.objects.filter(pk=invitation_id, used_at=None).update(expires_at=db_now())
        audit_log.record_act(staff, Invitation, audit_log.name_rows(found), "revoked")
        messages.success(request, f"The link for @{found[0].login} is no longer valid.")
    return HttpResponseRedirect(reverse("invitations"))


def _problems(request: HttpRequest, login: str, password: str) -> list[str]:
    """The reasons why a new password is refused."""
    if len(password) > MAX_PASSWORD_CHARS or "\0" in password:
        return [TOO_LONG]
    if password != request.POST.get("again", ""):
        return [PASSWORDS_DIFFER]
    try:
        validate_password(password, user=User(login=login))
    except ValidationError as invalid:
        return list(invalid.messages)
    return []


def _join_page(
    request: HttpRequest,
    token: str,
    invitation: Invitation,
    problems: list[str] | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    works = passkeys_work()
    options = registration_options(invitation.login, invitations.challenge_of(token)) if works else None
    context = {
        "invitation": invitation,
        "options": json.dumps(options) if options else "",
        "hub": settings.PUBLIC_URL,
        "problems": problems or [],
        "least_chars": settings.MIN_PASSWORD_CHARS,
    }
    return render(request, "join.html", context, status=status)


def _no_link(request: HttpRequest, text: str, status: int) -> HttpResponse:
    context = {"title": "This link does not work", "text": text, "status": status, "leads_to_signin": True}
    return render(request, "errors/page.html", context, status=status)


def _invite_page(
    request: HttpRequest, *, invited: Invited | None = None, login: str = "", error: str = "", status: int = 200
) -> HttpResponse:
    rows = invitations.open_now().select_related("made_by").order_by("-created_at", "-pk")
    context = {"rows": rows[:LISTED], "invited": invited, "login": login, "error": error}
    return render(request, "invitations.html", context, status=status)
