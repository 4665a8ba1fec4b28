"""The dialects, and which of them a request speaks, by its `A2A-Version` and its method.

Methods of A2A 0.3 hold a slash; A2A 1.0 and the hub share PascalCase names, so the version tells them apart.
"""

from collections.abc import Mapping
from typing import Any

from a2a_bridge.wire.dialects.dialect import Dialect
from a2a_bridge.wire.dialects.hub import HUB
from a2a_bridge.wire.dialects.v03 import BOTH_FORMS, V03, has_no_kinds
from a2a_bridge.wire.dialects.v1 import V1
from a2a_bridge.wire.errors import VERSION_NOT_SUPPORTED
from kit.asgi import HttpRequest
from kit.jsonrpc import METHOD_NOT_FOUND, RpcError

DIALECTS: tuple[Dialect, ...] = (
    HUB,
    V03,
    V1,
)
INFO_PATH = "/extensions/agent-info/v1"
RATING_PATH = "/extensions/rating/v1"
EXTENSION_PATHS = (INFO_PATH, RATING_PATH)


def _find(version: str, *, has_slash: bool) -> Dialect:
    spoken = (one for one in DIALECTS if version in one.versions and one.has_slash in (None, has_slash))
    return next(spoken)


# By version: the dialect of methods without a slash, and of those with one.
SPOKEN: Mapping[str | None, tuple[Dialect, Dialect]] = {
    version: (_find(version, has_slash=False), _find(version, has_slash=True))
    for one in DIALECTS
    for version in one.versions
}
_NAMED = [one for one in reversed(DIALECTS) if one.name in one.versions]  # the newest first
_WANTED = f"want A2A-Version {' or '.join(one.name for one in _NAMED)}, or none"


def version_of(request: HttpRequest) -> str | None:
    """Major and minor of the version in the headers, else in the query; None: the request contradicts itself."""
    if "a2a-version" not in request.headers and not request.scope.get("query_string"):
        return ""
    named = request.values("a2a-version") or request.query_values("A2A-Version")
    if len(named) > 1 and len({version.strip() for version in named}) > 1:
        return None
    version = named[0].strip() if named else ""
    return version if version in SPOKEN else ".".join(version.split(".")[:2])


def choose(method: str, version: str | None, params: Any = None) -> Dialect:
    """The dialect for the name of a method, and for parameters without any `kind` (`both_forms`).

    Raises:
        RpcError: -32009 for a version not spoken here.
    """
    if version not in SPOKEN:
        raise RpcError(VERSION_NOT_SUPPORTED, _WANTED)
    dialect = SPOKEN[version]["/" in method]
    return BOTH_FORMS if dialect is V03 and has_no_kinds(params) else dialect


def no_method(method: str) -> RpcError:
    """-32601; when another version has it, with what to send."""
    version = next((one.name for one in _NAMED if method in one.methods), "")
    return RpcError(
        METHOD_NOT_FOUND, f"no method {method[:60]!r} here{f': send A2A-Version: {version}' if version else ''}"
    )
