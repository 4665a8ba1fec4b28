"""What every request of AGNT has to be before anything of it is read: TLS, HTTP method, no key in its address."""

from collections.abc import Sequence
from urllib.parse import parse_qsl

from agnt.errors import MALFORMED, EnvelopeRefused, ErrorCode
from kit.asgi import HttpRequest

KEY_PREFIX = "agnt_live_"
KEY_NAMES = frozenset({"key", "api_key", "apikey", "token", "access_token", "authorization", "x-api-key"})
METHOD_NOT_ALLOWED = 405
UNENCRYPTED = frozenset({"http", "ws"})


def check_transport(request: HttpRequest, methods: Sequence[str], *, is_https: bool) -> None:
    """Refuse what came in plain text to a hub with TLS, another HTTP method, keys in the address, and two keys.

    Raises:
        EnvelopeRefused: `tls_required`; `invalid_envelope` on 405 and 400.
    """
    if is_https and request.scope.get("scheme", "http") in UNENCRYPTED:
        raise EnvelopeRefused(ErrorCode.TLS_REQUIRED, "send it over HTTPS, and give this key up: it was readable")
    if request.method not in methods:
        raise EnvelopeRefused(
            ErrorCode.INVALID_ENVELOPE, f"want {' or '.join(methods)}", status=METHOD_NOT_ALLOWED
        )
    if _has_key(request.scope.get("query_string", b"")):
        text = "a key belongs in the header Authorization, never in the address"
        raise EnvelopeRefused(ErrorCode.INVALID_ENVELOPE, text, status=MALFORMED)
    if request.contradicted:
        text = f"the header {request.contradicted} came with two values"
        raise EnvelopeRefused(ErrorCode.INVALID_ENVELOPE, text, status=MALFORMED)


def find_token(request: HttpRequest) -> str:
    """The AGNT key in the header `Authorization`; empty where there is none, or something else."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token.startswith(KEY_PREFIX) else ""


def _has_key(query: bytes) -> bool:
    if not query:
        return False
    pairs = parse_qsl(str(query, "latin-1"), keep_blank_values=True)
    return any(name.lower() in KEY_NAMES or KEY_PREFIX in value or KEY_PREFIX in name for name, value in pairs)
