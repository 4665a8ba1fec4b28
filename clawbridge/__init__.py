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
    from clawbridge.errors import BadArguments, HubError, Refused, TaskNotFound, Unauthorized, Unreachable
    from clawbridge.sending import Update
    from clawbridge.shapes import Artifact, ArtifactFile, Message, Part, Status, Task

VERSION = "0.1.0"
MODULES = {  # imported when a name is first used: the hub and the connector need no client of HTTP
    "client": ("AsyncClient", "Client"),
    "calls": ("STATES",),
    "sending": ("Update",),
    "errors": ("BadArguments", "HubError", "Refused", "TaskNotFound", "Unauthorized", "Unreachable"),
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


def __getattr__(name: str) -> Any:
    """A name of `__all__`."""
    for module, names in MODULES.items():
        if name in names:
            return getattr(import_module(f"clawbridge.{module}"), name)
    raise AttributeError(f"module 'clawbridge' has no attribute {name!r}")
