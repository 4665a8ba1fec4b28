"""From a GitHub account to a user of the hub. The GitHub id is the key, the login only a name that may move."""

from collections.abc import Callable

from django.conf import settings
from django.db import IntegrityError, transaction

from accounts.models import User
from accounts.oauth.errors import LoginTaken, SignupClosed, Suspended
from accounts.oauth.github import Profile
from accounts.tokens import LOGIN as LOCAL_LOGIN

AVATAR_CHARS = 200
CLOSED = "this hub lets nobody new in, or not @{login}: ask its operator"
TAKEN = (
    "@{login} is the name of a local account of this hub, so it was not given to you. Its operator can settle"
    " this: manage.py link_github --login {login} --github-id {id} when it is your account, else with --rename"
)
SUSPENDED = "@{login} is suspended on this hub: ask its operator"


class CannotLink(Exception):
    """The account cannot be linked or renamed; the text says why."""


def admit(profile: Profile, *, is_member: Callable[[str], bool]) -> User:
    """The user with this GitHub id, with the login they now have; a new user when SIGNUP lets them in.

    Raises:
        SignupClosed, LoginTaken, Suspended: nothing was written.
    """
    if not User.objects.filter(github_id=profile.id).exists() and not _may_join(profile, is_member):
        raise SignupClosed(CLOSED.format(login=profile.login))
    try:
        return _account(profile)
    except IntegrityError:  # two first sign-ins in the same moment
        return _account(profile)


def link(login: str, github_id: int) -> User:
    """Give a local account to the holder of a GitHub account, for good.

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
    if user is None:
        raise CannotLink(f"there is no account @{login}")
    if user.github_id is not None:
        raise CannotLink(f"@{user.login} is linked to GitHub id {user.github_id} already")
    return user


def _may_join(profile: Profile, is_member: Callable[[str], bool]) -> bool:
    signup = settings.SIGNUP
    is_named = signup.is_open or profile.login.lower() in signup.logins
    return is_named or any(is_member(org) for org in signup.orgs)


@transaction.atomic
def _account(profile: Profile) -> User:
    user = User.objects.select_for_update().filter(github_id=profile.id).first()
    if user is not None and not user.is_active:
        raise Suspended(SUSPENDED.format(login=user.login))
    holder = User.objects.select_for_update().filter(login__iexact=profile.login).exclude(github_id=profile.id)
    taken_by = holder.first()
    if taken_by is not None and taken_by.github_id is not None:  # GitHub gave the name to somebody else since
        taken_by.login = _name_left_behind(taken_by)
        taken_by.save(update_fields=["login"])
        taken_by = None
    if user is None:
        if taken_by is not None:
            raise LoginTaken(TAKEN.format(login=taken_by.login, id=profile.id))
        user = User(github_id=profile.id)
    if taken_by is None:
        user.login = profile.login
    user.avatar_url = _avatar(profile)
    user.save()
    return user


def _name_left_behind(user: User) -> str:
    """A login for who renamed themselves and has not signed in since; their handles stay as they are."""
    name = f"{user.login[:40]}-{user.github_id}"
    while User.objects.named(name):
        name += "x"
    return name


def _avatar(profile: Profile) -> str:
    address = profile.avatar_url or ""
    return address if address.startswith("https://") and len(address) <= AVATAR_CHARS else ""
