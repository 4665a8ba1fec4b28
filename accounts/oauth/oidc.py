"""Signing in at an OpenID Connect provider, by Authlib: where to send a browser, and whom its code speaks for.

What counts is the ID token: its signature by a key of the provider, and its issuer, audience, times and nonce. The
provider's tokens are used within one request: they are neither stored nor logged.
"""

import logging
import time
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import msgspec
import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from accounts import settings
from accounts.errors import ProviderFailed, ProviderRefused
from accounts.oauth.provider_session import open_session
from accounts.signup import Provider
from kit.env import is_safe

logger = logging.getLogger(__name__)

SCOPE = "openid profile email"
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA"]
LEEWAY_S = 60
METADATA_KEPT_S = 300.0
MAX_SUBJECT_CHARS = 255
FAILED = "{name} did not answer as it should: try again in a moment"
REFUSED = "{name} does not accept this sign-in any more: begin again"
T = TypeVar("T")


class _Metadata(msgspec.Struct, frozen=True):
    """The fields of a provider's `openid-configuration` that the hub uses."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False

    @property
    def is_safe(self) -> bool:
        """Whether secrets may travel to each of its addresses."""
        asked = [self.authorization_endpoint, self.token_endpoint, self.jwks_uri]
        return all(map(is_safe, [*asked, self.userinfo_endpoint] if self.userinfo_endpoint else asked))


@dataclass(frozen=True, slots=True)
class OidcProfile:
    """Whom a provider vouches for. Issuer and subject are the key; the names may change, and are not unique.

    `email` is one that the provider has verified, in lower case, else empty.
    """

    issuer: str
    subject: str
    username: str = ""
    email: str = ""
    picture: str = ""


def find_provider(number: int) -> Provider | None:
    """The provider of this number."""
    return next((one for one in settings.OIDC_PROVIDERS if one.number == number), None)


def authorize_url(provider: Provider, *, state: str, verifier: str, nonce: str) -> str:
    """Where to send a browser, with the S256 challenge of the verifier.

    Raises:
        ProviderFailed: its metadata could not be read.
    """
    with _session(provider) as session:
        metadata = _metadata(provider, session)
        session.scope = SCOPE
        url, _ = session.create_authorization_url(
            metadata.authorization_endpoint, state=state, code_verifier=verifier, nonce=nonce
        )
    return str(url)


def redeem(provider: Provider, code: str, *, verifier: str, nonce: str, issuer: str) -> OidcProfile:
    """Whom a code speaks for. All of it must end within PROVIDER_WITHIN_S.

    `issuer`: the `iss` that came with the code, if any (RFC 9207).

    Raises:
        ProviderRefused: the code is not good for this sign-in.
        ProviderFailed: no answer in time, or none that holds.
    """
    with _session(provider) as session:
        metadata = _metadata(provider, session)
        if issuer != metadata.issuer and (issuer or metadata.authorization_response_iss_parameter_supported):
            raise _failed(provider, "the code is of another issuer")
        offered = metadata.token_endpoint_auth_methods_supported
        by_post = "client_secret_post" in offered
        session.token_endpoint_auth_method = "client_secret_post" if by_post else "client_secret_basic"
        try:
            token = session.fetch_token(metadata.token_endpoint, code=code, code_verifier=verifier)
            keys = KeySet.import_key_set(cast(Any, _read(session, metadata.jwks_uri, dict)))
            claims = _claims(provider, metadata, token, keys, nonce)
            if metadata.userinfo_endpoint and "preferred_username" not in claims:
                more = _read(session, metadata.userinfo_endpoint, dict, with_token=True)
                claims = more | claims if more.get("sub") == claims["sub"] else claims
        except OAuthError as refused:
            logger.warning("oidc.refused", extra={"issuer": provider.issuer, "error": str(refused.error)[:100]})
            raise ProviderRefused(REFUSED.format(name=provider.name)) from None
        except _BROKEN as failure:
            raise _failed(provider, f"{type(failure).__name__}: {failure}"[:200]) from None
    return _vouched(metadata.issuer, claims)


_BROKEN = (
    AuthlibBaseError,
    JoseError,
    requests.RequestException,
    msgspec.MsgspecError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
)


def _claims(provider: Provider, metadata: _Metadata, token: Any, keys: KeySet, nonce: str) -> dict[str, Any]:
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


def _vouched(issuer: str, claims: dict[str, Any]) -> OidcProfile:
    def text(name: str) -> str:
        value = claims.get(name)
        return value if isinstance(value, str) and value.isprintable() else ""

    email = text("email").lower() if claims.get("email_verified") in (True, "true") else ""
    username = text("preferred_username") or text("nickname") or email.partition("@")[0]
    return OidcProfile(issuer, claims["sub"], username, email, text("picture"))


_kept: dict[str, tuple[float, _Metadata]] = {}


def _metadata(provider: Provider, session: OAuth2Session) -> _Metadata:
    """A provider's own description, read again every METADATA_KEPT_S."""
    read_at, metadata = _kept.get(provider.issuer, (0.0, None))
    if metadata is not None and time.monotonic() < read_at + METADATA_KEPT_S:
        return metadata
    try:
        metadata = _read(session, f"{provider.issuer}/.well-known/openid-configuration", _Metadata)
    except _BROKEN as failure:
        raise _failed(provider, f"{type(failure).__name__}: {failure}"[:200]) from None
    if metadata.issuer.rstrip("/") != provider.issuer or not metadata.is_safe:
        raise _failed(provider, "its metadata name another issuer, or an address without https")
    _kept[provider.issuer] = (time.monotonic(), metadata)
    return metadata


def _read(session: OAuth2Session, address: str, shape: type[T], *, with_token: bool = False) -> T:
    answer = session.request("GET", address, withhold_token=not with_token)
    if answer.status_code != 200:
        raise ValueError(f"status {answer.status_code}")
    return msgspec.json.decode(answer.content, type=shape)


def callback_of(provider: Provider) -> str:
    """Where the provider sends browsers back to; the operator registers it there."""
    return f"{settings.PUBLIC_URL}/api/v1/auth/oidc/{provider.number}/callback"


def _session(provider: Provider) -> OAuth2Session:
    return open_session(provider.client_id, provider.client_secret, callback_of(provider))


def _failed(provider: Provider, why: str) -> ProviderFailed:
    logger.warning("oidc.failed", extra={"issuer": provider.issuer, "why": why})
    return ProviderFailed(FAILED.format(name=provider.name))
