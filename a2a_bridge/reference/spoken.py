"""What the reference says of a dialect that its object does not: its name, its parameters, a message in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from a2a_bridge.dialects import hub
from a2a_bridge.dialects.dialect import Dialect, Operation
from a2a_bridge.dialects.v03 import params as v03_params
from a2a_bridge.dialects.v1 import params as v1_params
from a2a_bridge.versions import DIALECTS, HUB, V03, V1

Json = dict[str, Any]
Structs = Mapping[Operation, type[Struct]]

QUESTION = "what's a lifetime?"
ONE_OF_PROTO: Json = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": QUESTION}]}
ONE_OF_KINDS: Json = {
    "kind": "message",
    "messageId": "m1",
    "role": "user",
    "parts": [{"kind": "text", "text": QUESTION}],
}


@dataclass(frozen=True, slots=True)
class Spoken:
    """A dialect in the reference. `version`: what to send as `A2A-Version`; empty: nothing."""

    dialect: Dialect
    title: str
    version: str
    about: str
    message: Json
    structs: Structs = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Its name in addresses of the page, `hub` or `v1-0`."""
        name = self.dialect.name
        return f"v{name.replace('.', '-')}" if name[:1].isdigit() else name


HUB_STRUCTS: Structs = {
    Operation.SEND: hub.SendMessageParams,
    Operation.STREAM: hub.SendMessageParams,
    Operation.GET: hub.GetTaskParams,
}
V1_STRUCTS: Structs = {
    Operation.SEND: v1_params.SendParams,
    Operation.STREAM: v1_params.SendParams,
    Operation.GET: v1_params.TaskParams,
    Operation.LIST: v1_params.ListParams,
    Operation.CANCEL: v1_params.TaskParams,
    Operation.SUBSCRIBE: v1_params.TaskParams,
    Operation.CREATE_PUSH: v1_params.PushConfig,
    Operation.GET_PUSH: v1_params.NamePushParams,
    Operation.LIST_PUSH: v1_params.ListPushParams,
    Operation.DELETE_PUSH: v1_params.NamePushParams,
}
V03_STRUCTS: Structs = {
    Operation.SEND: v03_params.SendParams,
    Operation.STREAM: v03_params.SendParams,
    Operation.GET: v03_params.TaskParams,
    Operation.CANCEL: v03_params.TaskParams,
    Operation.SUBSCRIBE: v03_params.TaskParams,
}
KNOWN = (
    Spoken(
        HUB,
        "The hub's own",
        "",
        "For a few lines of curl or fetch: bare tasks, nothing to install. Each SendMessage is a task of its own,"
        " and contextId repeats its messageId.",
        ONE_OF_PROTO,
        HUB_STRUCTS,
    ),
    Spoken(
        V1,
        "A2A 1.0",
        "1.0",
        "What the official SDKs 1.x speak, and all there is: follow-ups, cancel, lists, replay, push. Names may"
        " come in snake_case and enums as numbers; answers are camelCase and names.",
        ONE_OF_PROTO,
        V1_STRUCTS,
    ),
    Spoken(
        V03,
        "A2A 0.3",
        "",
        "What the official SDKs 0.3.x speak, known by the slash in a method's name; A2A-Version: 0.3 is fine too."
        " Text and data, no files. A plain reply of a hybrid agent is a message and leaves no task.",
        ONE_OF_KINDS,
        V03_STRUCTS,
    ),
)


def spoken() -> list[Spoken]:
    """Every dialect that is registered, in their order; one without words here still appears."""
    known = {one.dialect.name: one for one in KNOWN}
    return [known.get(one.name) or Spoken(one, f"A2A {one.name}", one.name, "", ONE_OF_PROTO) for one in DIALECTS]
