"""GitHub and OpenID Connect providers: where to send a browser, and for which account its code stands.

Of an OpenID Connect provider the ID token counts: its signature by a key of the provider, and its issuer,
audience, times and nonce. Tokens of providers are used within one request: they are neither stored nor logged.
"""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast
from urllib.parse import quote

import msgspec
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from accounts import settings
from accounts.errors import (
    GitHubFailed,
    GitHubRefused,
    NotConfigured,
    ProviderFailed,
    ProviderRefused,
)
from accounts.oauth.attempts import Started
from accounts.oauth.provider_session import ProviderSession, make_authorize_url, reported
from accounts.signup import LOGIN, Provider
from kit.env import is_safe

GITHUB_CALLBACK = "/api/v1/auth/oauth/callback"
GITHUB_TOKEN = re.compile(r"[\x21-\x7e]{1,512}\Z")

OIDC_SCOPE = "openid profile email"
GROUPS_SCOPE = "groups"  # of providers that announce it; others refuse a scope that they do not know
MAX_GROUP_CHARS = 255
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA"]
LEEWAY_S = 60
METADATA_KEPT_S = 300.0
MAX_SUBJECT_CHARS = 255
T = TypeVar("T")


class GitHubProfile(msgspec.Struct, frozen=True):
    """A user of GitHub. The id never changes hands; the login may."""

    id: Annotated[int, msgspec.Meta(gt=0, lt=2**62)]
    login: str
    avatar_url: str | None = None


class _Organization(msgspec.Struct, frozen=True):
    login: str


class _Membership(msgspec.Struct, frozen=True):
    state: str
    organization: _Organization


def has_github() -> bool:
    """True if people can sign in with GitHub here."""
    return bool(settings.GITHUB_CLIENT_ID)


def check_github() -> None:
    """Check that users can sign in with GitHub.

    Raises:
        NotConfigured: GitHub is not set up.
    """
    if not has_github():
        raise NotConfigured(
            "this hub has no GitHub sign-in: its operator must set GITHUB_CLIENT_ID and GITHUB_CLIENT_SECRET"
            f" of an OAuth app whose callback URL is {settings.PUBLIC_URL}{GITHUB_CALLBACK}"
        )


def github_url(started: Started) -> str:
    """The address at which a browser signs in with GitHub."""
    return make_authorize_url(
        f"{settings.GITHUB_URL}/login/oauth/authorize",
        settings.GITHUB_CLIENT_ID,
        settings.PUBLIC_URL + GITHUB_CALLBACK,
        started,
        scope="read:org" if settings.SIGNUP.orgs else None,
    )


class GitHub:
    """GitHub's API with the token of the user who signs in; redeems the code, and works until the sign-in's
    deadline.

    Raises:
        GitHubRefused: the code is not valid for this sign-in.
        GitHubFailed: GitHub sent no valid response in time. The methods raise this, too.
    """

    def __init__(self, code: str, verifier: str) -> None:
        self._session = ProviderSession()
        with self._reported():
            answer = self._session.redeem_code(
                f"{settings.GITHUB_URL}/login/oauth/access_token",
                {"code": code, "code_verifier": verifier},
                client=(settings.GITHUB_CLIENT_ID, settings.GITHUB_CLIENT_SECRET),
                callback=settings.PUBLIC_URL + GITHUB_CALLBACK,
            )
            self._token = str(answer.get("access_token", ""))
            if not GITHUB_TOKEN.match(self._token):
                raise ValueError("no token")

    def profile(self) -> GitHubProfile:
        """The profile of the user who signed in."""
        with self._reported():
            profile = self._read("/user", GitHubProfile)
            if profile is None or not LOGIN.match(profile.login):
                raise ValueError("profile")
            return profile

    def is_member(self, org: str) -> bool:
        """True if the user is an active member of the organisation; an invitation is not enough."""
        with self._reported():
            found = self._read(f"/user/memberships/orgs/{quote(org)}", _Membership)
            return found is not None and found.state == "active" and found.organization.login.lower() == org

    def _read(self, path: str, shape: type[T]) -> T | None:
        """A response of the API; None if GitHub responds 403 or 404."""
        headers = {"Accept": "application/vnd.github+json"}
        status, body = self._session.send("GET", settings.GITHUB_API_URL + path, headers, token=self._token)
        if status in (403, 404):
            return None
        if status != 200:
            raise ValueError(f"status {status}")
        return msgspec.json.decode(body, type=shape)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        with reported("GitHub", "github", GitHubRefused, GitHubFailed):
            yield


class _ProviderMetadata(msgspec.Struct, frozen=True):
    """The fields of a provider's `openid-configuration` that the hub uses."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    scopes_supported: tuple[str, ...] = ()
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False

    @property
    def is_safe(self) -> bool:
        """True if secrets may be sent to each address of the provider."""
        asked = [self.authorization_endpoint, self.token_endpoint, self.jwks_uri]
        return all(map(is_safe, [*asked, self.userinfo_endpoint] if self.userinfo_endpoint else asked))


@dataclass(frozen=True, slots=True)
class OidcProfile:
    """The profile of a person at an OpenID Connect provider.

    Issuer and subject are the key; the names may change, and are not unique.

    `email`: the address in lower case if the provider has verified it, else empty. `preferred_username`: only this
    claim, where `username` may be a nickname. `object_id`: Entra's key of the person, equal for all its clients.
    `groups`: the values of the provider's claim of groups; None: the hub reads none, or Entra left out too many.
    """

    issuer: str
    subject: str
    username: str = ""
    email: str = ""
    picture: str = ""
    preferred_username: str = ""
    object_id: str = ""
    groups: tuple[str, ...] | None = None


def oidc_callback(provider: Provider) -> str:
    """The address to which the provider sends browsers back; the operator registers it at the provider."""
    return f"{settings.PUBLIC_URL}/api/v1/auth/oidc/{provider.number}/callback"


def oidc_url(provider: Provider, started: Started) -> str:
    """The address at which a browser signs in at a provider.

    Raises:
        ProviderFailed: the provider's metadata could not be read.
    """
    with _reported_of(provider):
        metadata = _read_metadata(provider, ProviderSession())
    endpoint, callback = metadata.authorization_endpoint, oidc_callback(provider)
    is_scope = provider.groups_claim and GROUPS_SCOPE in metadata.scopes_supported
    scope = f"{OIDC_SCOPE} {GROUPS_SCOPE}" if is_scope else OIDC_SCOPE
    return make_authorize_url(endpoint, provider.client_id, callback, started, scope=scope, nonce=started.nonce)


def redeem_oidc(provider: Provider, code: str, started: Started, *, issuer: str) -> OidcProfile:
    """Exchange a code for the person's profile. `issuer`: the `iss` that came with the code, if any (RFC 9207).

    Raises:
        ProviderRefused: the code is not valid for this sign-in.
        ProviderFailed: the provider sent no valid response in time.
    """
    session = ProviderSession()
    with _reported_of(provider):
        metadata = _read_metadata(provider, session)
        if issuer != metadata.issuer and (issuer or metadata.authorization_response_iss_parameter_supported):
            raise ValueError("the code is of another issuer")
        token = session.redeem_code(
            metadata.token_endpoint,
            {"code": code, "code_verifier": started.verifier},
            client=(provider.client_id, provider.client_secret),
            callback=oidc_callback(provider),
            is_basic="client_secret_post" not in metadata.token_endpoint_auth_methods_supported,
        )
        keys = KeySet.import_key_set(cast(Any, session.get(metadata.jwks_uri, dict)))
        claims = _read_claims(provider, metadata, token, keys, started.nonce)
        wanted = {"preferred_username", provider.groups_claim} - {""}
        if metadata.userinfo_endpoint and wanted - claims.keys():
            more = session.get(metadata.userinfo_endpoint, dict, token=str(token["access_token"]))
            claims = more | claims if more.get("sub") == claims["sub"] else claims
    return _make_profile(metadata.issuer, claims, provider.groups_claim)


@contextmanager
def _reported_of(provider: Provider) -> Iterator[None]:
    with reported(provider.name, "oidc", ProviderRefused, ProviderFailed, issuer=provider.issuer):
        yield


def _read_claims(
    provider: Provider, metadata: _ProviderMetadata, token: Mapping[str, Any], keys: KeySet, nonce: str
) -> dict[str, Any]:
    registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
    decoded = jwt.decode(str(token["id_token"]), keys, registry=registry)
    claims = CodeIDToken(
        decoded.claims,
        decoded.header,
        {
            "iss": {"essential": True, "value": metadata.issuer},
            "aud": {"essential": True, "value": provider.client_id},
            "nonce": {"essential": True, "value": nonce},
        },
        {"nonce": nonce, "client_id": provider.client_id, "access_token": token.get("access_token")},
    )
    claims.validate(leeway=LEEWAY_S)
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT_CHARS or not subject.isprintable():
        raise ValueError("sub is no text of 1 to 255 printable characters")
    return dict(claims)


def _make_profile(issuer: str, claims: Mapping[str, Any], groups_claim: str) -> OidcProfile:
    def text(name: str) -> str:
        value = claims.get(name)
        return value if isinstance(value, str) and value.isprintable() else ""

    verified = claims.get("email_verified")  # a boolean; `1 == True`, too
    email = text("email").lower() if verified is True or verified == "true" else ""
    username = text("preferred_username") or text("nickname") or email.partition("@")[0]
    return OidcProfile(
        issuer,
        claims["sub"],
        username,
        email,
        text("picture"),
        preferred_username=text("preferred_username"),
        object_id=text("oid"),
        groups=_read_groups(claims, groups_claim) if groups_claim else None,
    )


def _read_groups(claims: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    """The values of the claim, none if it is missing; None if Entra left it out because they are too many."""
    elsewhere = claims.get("_claim_names")
    if name not in claims and (claims.get("hasgroups") or (isinstance(elsewhere, dict) and name in elsewhere)):
        return None
    value = claims.get(name)
    values = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(one for one in values if isinstance(one, str) and 0 < len(one) <= MAX_GROUP_CHARS)


_kept: dict[str, tuple[float, _ProviderMetadata]] = {}


def _read_metadata(provider: Provider, session: ProviderSession) -> _ProviderMetadata:
    """The provider's metadata, cached for METADATA_KEPT_S."""
    read_at, kept = _kept.get(provider.issuer, (0.0, None))
    if kept is not None and time.monotonic() < read_at + METADATA_KEPT_S:
        return kept
    metadata = session.get(f"{provider.issuer}/.well-known/openid-configuration", _ProviderMetadata)
    if metadata.issuer.rstrip("/") != provider.issuer or not metadata.is_safe:
        raise ValueError("its metadata name another issuer, or an address without https")
    _kept[provider.issuer] = (time.monotonic(), metadata)
    return metadata
