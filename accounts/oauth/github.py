"""Signs in with GitHub, by Authlib: where to send a browser, and which account its code stands for.

GitHub's token is used within one request: it is neither stored nor logged.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

import msgspec
import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session

from accounts import settings
from accounts.errors import GitHubFailed, GitHubRefused, NotConfigured
from accounts.oauth.provider_session import open_session
from accounts.signup import LOGIN

logger = logging.getLogger(__name__)

CALLBACK = "/api/v1/auth/oauth/callback"
FAILED = "GitHub did not answer as it should: try again in a moment"
REFUSED = "GitHub does not accept this sign-in any more: begin again"
TOKEN = re.compile(r"[\x21-\x7e]{1,512}\Z")
T = TypeVar("T")


class Profile(msgspec.Struct, frozen=True):
    """A user of GitHub. The id never changes hands; the login may."""

    id: Annotated[int, msgspec.Meta(gt=0, lt=2**62)]
    login: str
    avatar_url: str | None = None


class _Organization(msgspec.Struct, frozen=True):
    login: str


class _Membership(msgspec.Struct, frozen=True):
    state: str
    organization: _Organization


class GitHub:
    """GitHub as one signed-in person sees it, until the deadline of the sign-in."""

    def __init__(self, session: OAuth2Session) -> None:
        self._session = session

    def profile(self) -> Profile:
        """Whose account it is.

        Raises:
            GitHubFailed: no answer in time, or no sensible one.
        """
        profile = self._read("/user", Profile)
        if profile is None or not LOGIN.match(profile.login):
            raise _failed("profile")
        return profile

    def is_member(self, org: str) -> bool:
        """Whether they are an active member of an organisation; an invitation is not enough.

        Raises:
            GitHubFailed: no answer in time, or no sensible one.
        """
        found = self._read(f"/user/memberships/orgs/{quote(org)}", _Membership)
        return found is not None and found.state == "active" and found.organization.login.lower() == org

    def _read(self, path: str, shape: type[T]) -> T | None:
        """An answer of the API; None when GitHub says there is none, or that it is not ours to see."""
        headers = {"Accept": "application/vnd.github+json"}
        answer = self._session.get(settings.GITHUB_API_URL + path, headers=headers)
        if answer.status_code in (403, 404):
            return None
        if answer.status_code != 200:
            raise _failed(f"status {answer.status_code}")
        return msgspec.json.decode(answer.content, type=shape)


def is_configured() -> bool:
    """Whether people can sign in with GitHub here."""
    return bool(settings.GITHUB_CLIENT_ID)


def check_configured() -> None:
    """Check that users can sign in with GitHub.

    Raises:
        NotConfigured: they cannot.
    """
    if not is_configured():
        raise NotConfigured(
            "this hub has no GitHub sign-in: its operator must set GITHUB_CLIENT_ID and GITHUB_CLIENT_SECRET"
            f" of an OAuth app whose callback URL is {_callback()}"
        )


def authorize_url(state: str, verifier: str) -> str:
    """Where to send a browser, with the S256 challenge of the verifier."""
    scope = "read:org" if settings.SIGNUP.orgs else None
    with _session(scope=scope) as session:
        address = f"{settings.GITHUB_URL}/login/oauth/authorize"
        url, _ = session.create_authorization_url(address, state=state, code_verifier=verifier)
    return str(url)


@contextmanager
def open_provider_session(code: str, verifier: str) -> Iterator[GitHub]:
    """Redeem a code; GitHub as its user, for the length of the block. All of it must end within PROVIDER_WITHIN_S.

    Raises:
        GitHubRefused: the code is not good for this sign-in.
        GitHubFailed: no answer in time, or no sensible one.
    """
    try:
        with _session() as session:
            token = session.fetch_token(
                f"{settings.GITHUB_URL}/login/oauth/access_token", code=code, code_verifier=verifier
            )
            if not TOKEN.match(str(token.get("access_token", ""))):
                raise _failed("no token")
            yield GitHub(session)
    except OAuthError as refused:
        logger.warning("github.refused", extra={"error": str(refused.error)[:100]})
        raise GitHubRefused(REFUSED) from None
    except (AuthlibBaseError, requests.RequestException, msgspec.MsgspecError, ValueError, KeyError) as failure:
        raise _failed(type(failure).__name__) from None


def _session(**options: Any) -> OAuth2Session:
    return open_session(
        settings.GITHUB_CLIENT_ID,
        settings.GITHUB_CLIENT_SECRET,
        _callback(),
        token_endpoint_auth_method="client_secret_post",  # noqa: S106  the name of a method
        **options,
    )


def _callback() -> str:
    return f"{settings.PUBLIC_URL}{CALLBACK}"


def _failed(why: str) -> GitHubFailed:
    logger.warning("github.failed", extra={"why": why})
    return GitHubFailed(FAILED)
