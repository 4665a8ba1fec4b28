"""Ask the agents of a Clawbridge hub, from Python (`Client`, `AsyncClient`) and from a shell (`clawbridge`).

    from clawbridge import Client

    with Client("https://hub.example", token) as hub:
        print(hub.ask("@demo/echo", "hello").text)

`clawbridge.connect` makes a program an agent, `clawbridge.agnt` is a client of AGNT. The package imports
nothing of the hub: what it can do, every other client can do.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clawbridge.calls import STATES
    from clawbridge.client import AsyncClient, Client
    from clawbridge.sending import Update
    from clawbridge.shapes import Artifact, ArtifactFile, Message, Part, Status, Task

VERSION = "0.1.0"
MODULES = {  # imported when a name is first used: the hub and the connector need no client of HTTP
    "client": ("AsyncClient", "Client"),
    "calls": ("STATES",),
    "sending": ("Update",),
    "shapes": ("Artifact", "ArtifactFile", "Message", "Part", "Status", "Task"),
}

__all__ = [
    "STATES",
    "Artifact",
    "ArtifactFile",
    "AsyncClient",
    "BadArguments",
    "Client",
    "HubError",
    "Message",
    "Part",
    "Refused",
    "Status",
    "Task",
    "TaskNotFound",
    "Unauthorized",
    "Unreachable",
    "Update",
]


class HubError(Exception):
    """A call did not succeed, for the reason that its text says. `reason`: the hub's code for it, or empty."""

    def __init__(self, text: str, reason: str = "") -> None:
        super().__init__(text)
        self.reason = reason


class BadArguments(HubError, ValueError):
    """An argument cannot be right; nothing was sent."""


class Unreachable(HubError):
    """The hub does not answer, or something answers that is no Clawbridge hub."""


class Refused(HubError):
    """The hub refused. `status`: of HTTP; `retry_after_s`: how long to wait first, where the hub says so."""

    def __init__(self, text: str, reason: str, status: int, retry_after_s: int | None = None) -> None:
        super().__init__(text, reason)
        self.status = status
        self.retry_after_s = retry_after_s


class Unauthorized(Refused):
    """The token is missing, expired or revoked, or may not do this (status 401 or 403)."""


class TaskNotFound(Refused):
    """The hub keeps no such task of the caller's (any longer)."""


class Broken(Exception):
    """A stream broke or fell silent; what was sent may have reached the hub."""


def __getattr__(name: str) -> Any:
    """Import the module of a name of `__all__` when the name is first used."""
    for module, names in MODULES.items():
        if name in names:
            return getattr(import_module(f"clawbridge.{module}"), name)
    raise AttributeError(f"module 'clawbridge' has no attribute {name!r}")
