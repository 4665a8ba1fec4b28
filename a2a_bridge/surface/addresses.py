"""The addresses of the HTTP+JSON binding, below an agent's own: one table for serving, describing and documenting.

Each also exists as `/{tenant}/…`. No card declares a tenant, so any is ignored, as it is among params.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from a2a_bridge.surface.asgi import PREFIX, handle_of
from a2a_bridge.wire.dialects.dialect import STREAMS, Operation
from kit.jsonrpc import METHOD_NOT_FOUND, RpcError

IN_BRACES = re.compile(r"\\{(\w+)\\}")
TENANT = re.compile(r"^[\w-][\w.~-]*/")
CARDS = re.compile(r"(?:(?:v1|core)/?|agent-card\.json|usage\.md|(?:.*/)?\.well-known/.*)", re.DOTALL)  # Django's


@dataclass(frozen=True, slots=True)
class Address:
    """A path below an agent's and what its HTTP methods do; `{names}` are members of the operation's params."""

    path: str
    operations: Mapping[str, Operation]
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        pattern = IN_BRACES.sub(r"(?P<\1>[^/:]+)", re.escape(self.path))
        object.__setattr__(self, "_pattern", re.compile(pattern))

    @property
    def verbs(self) -> list[str]:
        """The HTTP methods it takes; HEAD is a GET of what is no stream."""
        has_head = self.operations.get("GET") not in (None, *STREAMS)
        return [*self.operations, *(["HEAD"] if has_head else [])]

    def operation(self, verb: str) -> Operation:
        """The operation of one of the address's HTTP methods."""
        return self.operations["GET" if verb == "HEAD" else verb]

    def match(self, rest: str) -> dict[str, str] | None:
        """The values of the names in a path; None when the path is not of this address."""
        found = self._pattern.fullmatch(rest)
        return found.groupdict() if found else None


ADDRESSES = (
    Address("message:send", {"POST": Operation.SEND}),
    Address("message:stream", {"POST": Operation.STREAM}),
    Address("tasks", {"GET": Operation.LIST}),
    Address("tasks/{id}", {"GET": Operation.GET}),
    Address("tasks/{id}:cancel", {"POST": Operation.CANCEL}),
    Address("tasks/{id}:subscribe", {"POST": Operation.SUBSCRIBE, "GET": Operation.SUBSCRIBE}),
    Address("tasks/{taskId}/pushNotificationConfigs", {"POST": Operation.CREATE_PUSH, "GET": Operation.LIST_PUSH}),
    Address(
        "tasks/{taskId}/pushNotificationConfigs/{id}",
        {"GET": Operation.GET_PUSH, "DELETE": Operation.DELETE_PUSH},
    ),
    Address("extendedAgentCard", {"GET": Operation.SHOW_CARD}),
)


def split(path: str) -> tuple[str, str] | None:
    """The handle and the rest of a path that lies below an agent's and is not one of Django's, else None."""
    owner, slug, rest = [*path.removeprefix(PREFIX).split("/", 2), "", ""][:3]
    handle = handle_of(f"{PREFIX}{owner}/{slug}") if path.startswith(PREFIX) else None
    return (handle, rest) if handle and rest and not CARDS.fullmatch(rest) else None


def find_address(rest: str) -> tuple[Address, dict[str, str]]:
    """The address of a path below an agent's, a slash at its end tolerated; and what its names stand for.

    Raises:
        RpcError: there is none.
    """
    path = rest.removesuffix("/")
    for one in (path, TENANT.sub("", path)) if rest.isprintable() else ():
        for address in ADDRESSES:
            names = address.match(one)
            if names is not None:
                return address, names
    raise RpcError(METHOD_NOT_FOUND, "no such address below an agent's", status=404)
