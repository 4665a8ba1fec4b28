"""Parameters of A2A 1.0: what a request may hold, in camelCase. `reading.py` checks the rest."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from a2a_bridge.wire.dialects.reading import MAX_ID_CHARS, MAX_PARTS
from agents.transcript.pieces import Json, Part

Id = Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)]
LaterId = Annotated[str, Meta(max_length=MAX_ID_CHARS)]
Count = int | str | float | None
MAX_URL_CHARS = 2048


class V1Message(Struct, frozen=True, rename="camel"):
    """A Message of a caller."""

    message_id: Id
    role: str | int
    parts: Annotated[list[Part], Meta(min_length=1, max_length=MAX_PARTS)]
    context_id: LaterId = ""
    task_id: str = ""
    metadata: Json | UnsetType = UNSET
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[str, ...] = ()


class Authentication(Struct, frozen=True, rename="camel"):
    """How a push receiver knows the hub."""

    scheme: Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)]
    credentials: Annotated[str, Meta(max_length=4096)] = ""


class PushConfig(Struct, frozen=True, rename="camel"):
    """A TaskPushNotificationConfig."""

    url: Annotated[str, Meta(min_length=1, max_length=MAX_URL_CHARS)]
    task_id: str = ""
    id: LaterId = ""
    token: Annotated[str, Meta(max_length=4096)] = ""
    authentication: Authentication | None = None
    tenant: str = ""


class Configuration(Struct, frozen=True, rename="camel"):
    """A SendMessageConfiguration."""

    accepted_output_modes: tuple[str, ...] = ()
    task_push_notification_config: PushConfig | None = None
    history_length: Count = None
    return_immediately: bool = False


class SendParams(Struct, frozen=True, rename="camel"):
    """A SendMessageRequest."""

    message: V1Message
    configuration: Configuration = Configuration()
    metadata: Json | UnsetType = UNSET
    tenant: str = ""


class TaskParams(Struct, frozen=True, rename="camel"):
    """GetTask, CancelTask and SubscribeToTask name a task."""

    id: str
    history_length: Count = None
    metadata: Json | UnsetType = UNSET
    tenant: str = ""


class ListParams(Struct, frozen=True, rename="camel"):
    """A ListTasksRequest."""

    context_id: LaterId = ""
    status: str | int | None = None
    page_size: Count = None
    page_token: Annotated[str, Meta(max_length=512)] = ""
    history_length: Count = None
    status_timestamp_after: str = ""
    include_artifacts: bool = False
    tenant: str = ""


class NamePushParams(Struct, frozen=True, rename="camel"):
    """One push config of a task."""

    task_id: str
    id: str
    tenant: str = ""


class ListPushParams(Struct, frozen=True, rename="camel"):
    """The push configs of a task."""

    task_id: str
    page_size: Count = None
    page_token: Annotated[str, Meta(max_length=512)] = ""
    tenant: str = ""


class CardParams(Struct, frozen=True):
    """A GetExtendedAgentCardRequest."""

    tenant: str = ""
