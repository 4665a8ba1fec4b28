"""Maps accounts at GitHub or an OpenID Connect provider to users of the hub.

The GitHub id, or issuer and subject, are the key. A login is only a name: that of GitHub moves with the account
there; of another provider it is taken once, and never from a user who has it.
"""

import re
from collections.abc import Callable, Iterator
from itertools import count, islice
from shlex import quote

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Lower

from accounts import settings
from accounts.errors import LoginTaken, SignupClosed, Suspended
from accounts.models import ProviderIdentity, User
from accounts.oauth.identity_providers import GitHubProfile, OidcProfile
from accounts.oauth.provided_accounts import link_provided, move_provided
from accounts.provided_memberships import follow_claim
from accounts.tokens import LOGIN as LOCAL_LOGIN
from kit.clock import db_now
from kit.ids import unguessable

AVATAR_CHARS = 200
USERNAME_CHARS = 255
LOGIN_CHARS = 39
NUMBERED_LOGINS = 20
NO_NAME = "user"
CLOSED = "this hub accepts no new users, or not @{login}: ask its operator"
TAKEN = (
    "@{login} is the name of a local account of this hub, so it was not given to you. Its operator can settle"
    " this: manage.py link_github --login {login} --github-id {id} when it is your account, else with --rename"
)
SIGNUP_REFUSED = (
    "this hub takes no new accounts, or not yours: ask its operator, who can give you an account with"
    " manage.py link_oidc --login LOGIN --issuer {issuer} --subject {subject}"
)
SUSPENDED = "@{login} is suspended on this hub: ask its operator"


class CannotLink(Exception):
    """The account cannot be linked or renamed; the text says why."""


def sign_in_github_user(profile: GitHubProfile, *, is_member: Callable[[str], bool]) -> User:
    """The user with this GitHub id, whose login is updated; a new user if SIGNUP allows it.

    Raises:
        SignupClosed, LoginTaken, Suspended: nothing was written.
    """
    if not User.objects.filter(github_id=profile.id).exists() and not _may_join(profile, is_member):
        raise SignupClosed(CLOSED.format(login=profile.login))
    try:
        return _account(profile)
    except IntegrityError:  # two first sign-ins at the same time
        return _account(profile)


def sign_in_oidc_user(person: OidcProfile) -> User:
    """The user of this issuer and subject, or the account that SCIM has provided; a new user if SIGNUP allows it.

    The user name at the provider is not unique: a new user gets a login that is free, and never another user's
    account. The claim of groups, if the hub reads one, gives and takes memberships.

    Raises:
        SignupClosed, Suspended: nothing was written.
    """
    known = ProviderIdentity.objects.filter(issuer=person.issuer, subject=person.subject)
    if (user := _known(known)) is not None:
        move_provided(person, user)
    else:
        user = link_provided(person) or _new_oidc_user(person, known)
    if not user.is_active:
        raise Suspended(SUSPENDED.format(login=user.login))
    name = (person.preferred_username or person.email)[:USERNAME_CHARS]
    known.exclude(username=name).update(username=name)
    if person.groups is not None:
        follow_claim(user, person.groups)
    return user


def _new_oidc_user(person: OidcProfile, known: QuerySet[ProviderIdentity]) -> User:
    """A new user of this issuer and subject.

    Raises:
        SignupClosed, LoginTaken: nothing was written.
    """
    signup = settings.SIGNUP
    if not (signup.is_open or signup.takes_address(person.email)):
        raise SignupClosed(SIGNUP_REFUSED.format(issuer=quote(person.issuer), subject=quote(person.subject)))
    for login in free_logins(person.username):
        try:
            with transaction.atomic():
                user = User.objects.create(login=login, avatar_url=_avatar(person.picture))
                ProviderIdentity.objects.create(
                    user=user, issuer=person.issuer, subject=person.subject, last_used_at=db_now()
                )
                return user
        except IntegrityError:  # a concurrent sign-in took the login, or created this person's user
            if (found := _known(known)) is not None:
                return found
    raise LoginTaken("no login is free for you: try again")


def link_oidc(login: str, issuer: str, subject: str) -> User:
    """Link an account to a subject at a provider, permanently.

    Raises:
        CannotLink: there is no such account, or another account has this issuer and subject.
    """
    with transaction.atomic():
        user = User.objects.select_for_update().filter(login__iexact=login).first()
        if user is None or user.is_group:
            raise CannotLink(f"there is no account @{login}")
        if holder := ProviderIdentity.objects.filter(issuer=issuer, subject=subject).first():
            raise CannotLink(f"this subject belongs to @{holder.user.login} already")
        ProviderIdentity.objects.create(user=user, issuer=issuer, subject=subject)
    return user


def _known(known: QuerySet[ProviderIdentity]) -> User | None:
    identity = known.select_related("user").first()
    if identity is None:
        return None
    if not identity.user.is_active:
        raise Suspended(SUSPENDED.format(login=identity.user.login))
    known.update(last_used_at=db_now())
    return identity.user


def free_logins(username: str, unnamed: str = NO_NAME) -> Iterator[str]:
    """Yield free logins for a user name: the name itself, then with a number, then with a random suffix.

    `unnamed`: the name if nothing of the user name can be in a login.
    """
    name = re.sub(r"[^A-Za-z0-9]+", "-", username)[: LOGIN_CHARS - 4].strip("-") or unnamed
    numbered = [name, *(f"{name}-{number}" for number in islice(count(2), NUMBERED_LOGINS))]
    taken = set(
        User.objects.annotate(lower=Lower("login"))
        .filter(lower__in=[one.lower() for one in numbered])
        .values_list("lower", flat=True)
    )
    yield from (one for one in numbered if one.lower() not in taken)
    yield f"{name[:20]}-{unguessable()[:12]}"


def link(login: str, github_id: int) -> User:
    """Link a local account to a GitHub id, permanently.

    Raises:
        CannotLink: there is no such account, it is linked to another id, or another account has this id.
    """
    with transaction.atomic():
        user = _local(login)
        if holder := User.objects.filter(github_id=github_id).first():
            raise CannotLink(f"GitHub id {github_id} belongs to @{holder.login} already")
        user.github_id = github_id
        user.save(update_fields=["github_id"])
    return user


def rename(login: str, new: str) -> User:
    """Give a local account another login, so that the GitHub account of that login can join by itself.

    Raises:
        CannotLink: there is no such local account, or the new login is none or taken.
    """
    if not LOCAL_LOGIN.match(new):
        raise CannotLink(f"{new!r} is no login")
    with transaction.atomic():
        user = _local(login)
        if User.objects.named(new):
            raise CannotLink(f"@{new} is taken")
        user.login = new
        user.save(update_fields=["login"])
    return user


def _local(login: str) -> User:
    user = User.objects.select_for_update().filter(login__iexact=login).first()
    if user is None or user.is_group:
        raise CannotLink(f"there is no account @{login}")
    if user.github_id is not None:
        raise CannotLink(f"@{user.login} is linked to GitHub id {user.github_id} already")
    return user


def _may_join(profile: GitHubProfile, is_member: Callable[[str], bool]) -> bool:
    signup = settings.SIGNUP
    is_named = signup.is_open or profile.login.lower() in signup.logins
    return is_named or any(is_member(org) for org in signup.orgs)


@transaction.atomic
def _account(profile: GitHubProfile) -> User:
    user = User.objects.select_for_update().filter(github_id=profile.id).first()
    if user is not None and not user.is_active:
        raise Suspended(SUSPENDED.format(login=user.login))
    holder = User.objects.select_for_update().filter(login__iexact=profile.login).exclude(github_id=profile.id)
    taken_by = holder.first()
    # At GitHub the login has passed to another user since.
    if taken_by is not None and taken_by.github_id is not None:
        taken_by.login = _name_left_behind(taken_by)
        taken_by.save(update_fields=["login"])
        taken_by = None
    if user is None:
        if taken_by is not None:
            raise LoginTaken(TAKEN.format(login=taken_by.login, id=profile.id))
        user = User(github_id=profile.id)
    if taken_by is None:
        user.login = profile.login
    user.avatar_url = _avatar(profile.avatar_url)
    user.save()
    return user


def _name_left_behind(user: User) -> str:
    """A login for a user whose old login belongs to another user at GitHub now; the user's handles stay."""
    name = f"{user.login[:40]}-{user.github_id}"
    while User.objects.named(name):
        name += "x"
    return name


def _avatar(picture: str | None) -> str:
    address = picture or ""
    return address if address.startswith("https://") and len(address) <= AVATAR_CHARS else ""
