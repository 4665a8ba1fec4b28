"""Whether an address may be told: its URL, and what is to go along with each POST."""

import re

from a2a_bridge.dialects.reading import invalid
from a2a_bridge.requests import PushTarget
from kit.safe_http import NotSent
from webhooks.sending import check_url

SCHEME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")  # what a header may hold, whoever reads it


def check(target: PushTarget, within: str = "") -> None:
    """Look at an address as sending would now; `within` names where in the request it stands. It may take seconds.

    Raises:
        RpcError: -32602, naming the field.
    """
    _check_header(target.scheme, SCHEME, f"{within}authentication.scheme")
    _check_header(target.credentials, VALUE, f"{within}authentication.credentials")
    _check_header(target.token, VALUE, f"{within}token")
    try:
        check_url(target.url)
    except NotSent as refused:
        raise invalid(f"{within}url", f"{within}url: {refused}") from None


def _check_header(value: str, allowed: re.Pattern[str], where: str) -> None:
    if value and not allowed.fullmatch(value):
        raise invalid(where, f"{where}: want printable ASCII, as in a header")
