"""HTTP to identity providers during a sign-in: bounded in time and size; users see no details of failures."""

import base64
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec
from authlib.common.errors import AuthlibBaseError
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc.errors import JoseError

from accounts.errors import SignInRefused
from accounts.oauth.attempts import Started
from kit.durations import seconds
from kit.safe_http import NotSent, SafeHttp, TargetRules, Unanswered

logger = logging.getLogger(__name__)

PROVIDER_WITHIN_S = seconds(10.0, at_least_s=4.0)
MAX_ANSWER_BYTES = 262_144
RULES = TargetRules(allows_private=True)  # the operator names the provider, which may be in the operator's network
FAILED = "{name} did not answer as it should: try again in a moment"
REFUSED = "{name} does not accept this sign-in any more: begin again"
JSON_TYPE = "application/json"
T = TypeVar("T")

_BROKEN = (
    AuthlibBaseError,
    JoseError,
    NotSent,
    Unanswered,
    msgspec.MsgspecError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
)


class CodeRefused(Exception):
    """The token endpoint of a provider refused a code; the text is the provider's error code."""


class ProviderSession:
    """HTTP to one provider: no proxy, no redirect. All answers must come within PROVIDER_WITHIN_S together."""

    def __init__(self) -> None:
        self._deadline = time.monotonic() + PROVIDER_WITHIN_S

    def get(self, address: str, shape: type[T], *, token: str = "", accept: str = JSON_TYPE) -> T:
        """Get the JSON at an address, with a Bearer token if given.

        Raises:
            ValueError, NotSent, Unanswered, msgspec.MsgspecError: no JSON of this shape was received.
        """
        status, body = self.send("GET", address, {"Accept": accept}, token=token)
        if status != 200:
            raise ValueError(f"status {status}")
        return msgspec.json.decode(body, type=shape)

    def redeem_code(
        self,
        endpoint: str,
        form: Mapping[str, str],
        *,
        client: tuple[str, str],
        callback: str,
        is_basic: bool = False,
    ) -> dict[str, Any]:
        """Send a code to a token endpoint; returns its response. `client`: id and secret; `is_basic`: as a header.

        Raises:
            CodeRefused: the code is not valid for this sign-in.
            ValueError, NotSent, Unanswered, msgspec.MsgspecError: no valid response was received.
        """
        headers = {"Accept": JSON_TYPE, "Content-Type": "application/x-www-form-urlencoded;charset=UTF-8"}
        fields = {"grant_type": "authorization_code", "redirect_uri": callback, **form}
        if is_basic:
            headers["Authorization"] = "Basic " + base64.b64encode(":".join(client).encode()).decode()
        else:
            fields |= {"client_id": client[0], "client_secret": client[1]}
        status, body = self.send("POST", endpoint, headers, body=urlencode(fields).encode())
        if status >= 500:
            raise ValueError(f"status {status}")
        token = msgspec.json.decode(body, type=dict[str, Any])
        if "error" in token:
            raise CodeRefused(str(token["error"])[:100])
        return token

    def send(
        self, method: str, address: str, headers: Mapping[str, str], *, token: str = "", body: bytes = b""
    ) -> tuple[int, bytes]:
        """Send a request; returns the status and the body of the response.

        Raises:
            ValueError, NotSent, Unanswered: no complete response was received in time.
        """
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise ValueError("the deadline is over")
        http = SafeHttp(RULES, total_s=left_s, max_answer_bytes=MAX_ANSWER_BYTES)
        # Without this header a server may compress, and nothing here decompresses.
        own = {"User-Agent": "clawbridge", "Accept-Encoding": "identity", "Content-Length": str(len(body))}
        own |= {"Authorization": f"Bearer {token}"} if token else {}
        answer = http.send(method, address, headers={**own, **headers}, body=body)
        if answer.is_cut:
            raise ValueError("the answer is too long")
        return answer.status, answer.body


@contextmanager
def reported(
    name: str, kind: str, refused_as: type[SignInRefused], failed_as: type[SignInRefused], **about: str
) -> Iterator[None]:
    """Log a provider's failure, and raise the error that the person who signs in sees, without details."""
    try:
        yield
    except CodeRefused as refused:
        logger.warning(f"{kind}.refused", extra={**about, "error": str(refused)})  # noqa: G004  two events
        raise refused_as(REFUSED.format(name=name)) from None
    except _BROKEN as failure:
        logger.warning(f"{kind}.failed", extra={**about, "why": f"{type(failure).__name__}: {failure}"[:200]})  # noqa: G004
        raise failed_as(FAILED.format(name=name)) from None


def make_authorize_url(endpoint: str, client_id: str, callback: str, started: Started, **more: str | None) -> str:
    """The address to which to redirect a browser, with the S256 challenge of the verifier."""
    return str(
        prepare_grant_uri(
            endpoint,
            client_id,
            "code",
            callback,
            state=started.state,
            code_challenge=create_s256_code_challenge(started.verifier),
            code_challenge_method="S256",
            **more,
        )
    )
