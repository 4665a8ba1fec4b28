"""Everything of one user as lines of JSON, read a few rows or a slice of a file at a time; and as a download."""

import base64
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import ForeignKey, Model, Q, QuerySet
from django.http import StreamingHttpResponse

from a2a_bridge.models import Push, PushConfig, SendKey, StoredEvent, StoredTask
from accounts.models import ClientGrant, Credential, Passkey, ProviderIdentity, User
from agents.models import (
    Agent,
    AgentGrant,
    Alert,
    AlertAddress,
    AlertRule,
    CallerBlock,
    CallerBudget,
    DailyUsage,
    Event,
    File,
    FollowUp,
    Halt,
    OpMessage,
    PermissionRequest,
    RemoteCard,
    RemoteName,
    RemoteServer,
    Session,
    Share,
    TokenUsage,
    Turn,
)
from agents.transcript.files import BlobGone, open_file
from agnt.models import ApiKey, Booking, Cancellation, Interaction, Invoice, KeyUsage, Network, UsageEvent, Venue
from gateway.models import (
    EnvelopeKey,
    FrameRecord,
    HeldEntry,
    Letter,
    Proposal,
    ProtocolArtifact,
    ProtocolStep,
    ProtocolTask,
    SessionEntry,
    SessionLog,
    TeamAgent,
    TeamPolicy,
    Vote,
)
from gateway.service.letters.letters import show_frame
from gateway.service.sessions.entries import show_content
from kit.async_db import stream_slices
from kit.clock import db_now, iso
from kit.concurrency import DOWNLOADS, take_slot
from webhooks.models import Delivery, Subscription

FORMAT = "clawbridge-export"
VERSION = 1
MEDIA_TYPE = "application/x-ndjson"
SLICE_CHARS = 256 * 1024
KEYS_AT_ONCE = 1_000

SECRET = frozenset(
    {
        *("password", "digest", "sealed", "secret", "previous_secret", "credentials"),
        *("family_digest", "previous_digest", "successor_secret"),
    }
)
FEW = 4  # rows that may be about 1 MiB each


@dataclass(frozen=True, slots=True)
class ExportPart:
    """One table of an export. `of` narrows it to one user; `at_once`: rows in memory.

    `unseal`: reads the columns that are sealed at rest and whose content is the user's own.
    """

    name: str
    model: type[Model]
    of: Callable[[User], Q]
    at_once: int = 200
    unseal: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)

    def rows(self, user: User) -> QuerySet[Any]:
        """Theirs, oldest first."""
        return self.model._default_manager.filter(self.of(user)).order_by("pk")


PARTS: Sequence[ExportPart] = (
    ExportPart("account", User, lambda user: Q(pk=user.pk)),
    ExportPart("token", Credential, lambda user: Q(user=user)),
    ExportPart("client", ClientGrant, lambda user: Q(user=user)),
    ExportPart("provider_identity", ProviderIdentity, lambda user: Q(user=user)),
    ExportPart("passkey", Passkey, lambda user: Q(user=user)),
    ExportPart("session", Session, lambda user: Q(owner=user)),
    ExportPart("agent", Agent, lambda user: Q(owner=user)),
    ExportPart("agent_grant", AgentGrant, lambda user: Q(agent__owner=user)),
    ExportPart("caller_budget", CallerBudget, lambda user: Q(agent__owner=user) | Q(caller=user)),
    ExportPart("daily_usage", DailyUsage, lambda user: Q(agent__owner=user)),
    ExportPart("remote_server", RemoteServer, lambda user: Q(session__owner=user)),
    ExportPart("remote_card", RemoteCard, lambda user: Q(server__session__owner=user), at_once=FEW),
    ExportPart("halt", Halt, lambda user: Q(agent__owner=user) | Q(user=user) | Q(made_by=user)),
    ExportPart("block", CallerBlock, lambda user: Q(owner=user)),
    ExportPart("alert_rule", AlertRule, lambda user: Q(owner=user)),
    ExportPart("alert_address", AlertAddress, lambda user: Q(owner=user)),
    ExportPart("alert", Alert, lambda user: Q(agent__owner=user)),
    ExportPart("share", Share, lambda user: Q(session__owner=user) | Q(user=user)),
    ExportPart("asked", Turn, lambda user: Q(caller=user), at_once=FEW),
    ExportPart(
        "was_asked",
        Turn,
        lambda user: ~Q(caller=user) & Q(pk__in=Turn.objects.owned_by(user.pk).values("pk")),
        at_once=FEW,
    ),
    ExportPart("follow_up", FollowUp, lambda user: Q(caller=user) | Q(agent__owner=user), at_once=FEW),
    ExportPart("event", Event, lambda user: Q(session__owner=user), at_once=FEW),
    ExportPart("op_message", OpMessage, lambda user: Q(session__owner=user) | Q(author=user), at_once=FEW),
    ExportPart("file", File, lambda user: Q(session__owner=user) | Q(uploader=user)),
    ExportPart("permission_request", PermissionRequest, lambda user: Q(session__owner=user)),
    ExportPart("token_usage", TokenUsage, lambda user: Q(owner=user)),
    ExportPart("team_session", SessionLog, lambda user: Q(owner=user)),
    ExportPart(
        "team_session_entry",
        SessionEntry,
        lambda user: Q(log__owner=user),
        at_once=FEW,
        unseal={"content": show_content},
    ),
    ExportPart(
        "team_held_entry",
        HeldEntry,
        lambda user: Q(owner=user),
        at_once=FEW,
        unseal={"content": show_content},
    ),
    ExportPart("webhook", Subscription, lambda user: Q(owner=user)),
    ExportPart("delivery", Delivery, lambda user: Q(subscription__owner=user), at_once=FEW),
    ExportPart("team_agent", TeamAgent, lambda user: Q(owner=user)),
    ExportPart(
        "letter",
        Letter,
        lambda user: Q(owner=user) | Q(sender_owner=user),
        at_once=FEW,
        unseal={"envelope": show_frame, "reply": show_frame},
    ),
    ExportPart("team_policy", TeamPolicy, lambda user: Q(owner=user)),
    ExportPart("proposal", Proposal, lambda user: Q(owner=user)),
    ExportPart("vote", Vote, lambda user: Q(proposal__owner=user)),
    ExportPart("task", StoredTask, lambda user: Q(caller=user), at_once=FEW),
    ExportPart("task_event", StoredEvent, lambda user: Q(task__caller=user), at_once=FEW),
    ExportPart("send_key", SendKey, lambda user: Q(caller=user), at_once=FEW),
    ExportPart("push_config", PushConfig, lambda user: Q(caller=user)),
    ExportPart("push", Push, lambda user: Q(config__caller=user), at_once=FEW),
    ExportPart("protocol_task", ProtocolTask, lambda user: Q(owner=user), at_once=FEW),
    ExportPart("protocol_step", ProtocolStep, lambda user: Q(task__owner=user), at_once=FEW),
    ExportPart("protocol_artifact", ProtocolArtifact, lambda user: Q(task__owner=user), at_once=FEW),
    ExportPart("frame", FrameRecord, lambda user: Q(owner=user)),
    ExportPart("envelope_key", EnvelopeKey, lambda user: Q(owner=user)),
    ExportPart("network", Network, lambda user: Q(owner=user)),
    ExportPart("venue", Venue, lambda user: Q(network__owner=user)),
    ExportPart("api_key", ApiKey, lambda user: Q(network__owner=user)),
    ExportPart("key_usage", KeyUsage, lambda user: Q(key__network__owner=user)),
    ExportPart("booking", Booking, lambda user: Q(network__owner=user)),
    ExportPart("cancellation", Cancellation, lambda user: Q(network__owner=user)),
    ExportPart("usage_event", UsageEvent, lambda user: Q(network__owner=user)),
    ExportPart("invoice", Invoice, lambda user: Q(network__owner=user)),
    ExportPart("interaction", Interaction, lambda user: Q(network__owner=user)),
    ExportPart("remote_name", RemoteName, lambda user: Q(caller=user)),
)


def pieces(user: User) -> Iterator[str]:
    """The text: a head, a line for each row (`{"table", "row"}`), and an end that says how many there were.

    A piece is a line, or a part of a line that holds a file. A file that is deleted while it is read is cut short:
    its `data` does not have its `size`.
    """
    yield _head(user)
    count = 0
    for part in PARTS:
        for row in _rows(part, user):
            yield from _line(part, row)
            count += 1
    yield _end(count)


async def stream(user: User) -> AsyncIterator[str]:
    """The same in slices of about the same size."""
    async for piece in stream_slices(_slices(user)):
        yield piece


def _slices(user: User) -> Iterator[str]:
    """Joined until there is enough to send."""
    held: list[str] = []
    size = 0
    for piece in pieces(user):
        held.append(piece)
        size += len(piece)
        if size >= SLICE_CHARS:
            yield "".join(held)
            held, size = [], 0
    yield "".join(held)


def _rows(part: ExportPart, user: User) -> Iterator[Any]:
    """Many keys at a time, and of the rows as many as fit into memory. No cursor stays open between them."""
    people = [field.name for field in _shown(part.model) if _is_person(field)]
    whole = part.model._default_manager.select_related(*people).order_by("pk")
    for keys in _keys(part, user):
        for start in range(0, len(keys), part.at_once):
            yield from list(whole.filter(pk__in=keys[start : start + part.at_once]))


def _keys(part: ExportPart, user: User) -> Iterator[list[Any]]:
    rows = part.rows(user).values_list("pk", flat=True)
    keys = list(rows[:KEYS_AT_ONCE])
    while keys:
        yield keys
        keys = list(rows.filter(pk__gt=keys[-1])[:KEYS_AT_ONCE])


def _shown(model: type[Model]) -> list[Any]:
    return [field for field in model._meta.concrete_fields if field.name not in SECRET]


def _is_person(field: Any) -> bool:
    return isinstance(field, ForeignKey) and field.related_model is User


def _line(part: ExportPart, row: Any) -> Iterator[str]:
    shown = {field.name: _value(row, field) for field in _shown(part.model)}
    shown |= {name: unseal(shown[name]) for name, unseal in part.unseal.items()}
    line = json.dumps({"table": part.name, "row": shown}, ensure_ascii=False)
    slices = open_file(row) if isinstance(row, File) else None
    if slices is None:
        yield f"{line}\n"
        return
    yield f'{line.removesuffix("}}")}, "data": "'
    with suppress(BlobGone):
        for data in slices:
            yield base64.b64encode(data).decode()
    yield '"}}\n'


def _value(row: Any, field: Any) -> Any:
    if _is_person(field):
        person = getattr(row, field.name)
        return person.login if person else None
    value = field.value_from_object(row)
    match value:
        case datetime():
            return iso(value)
        case date():
            return value.isoformat()
        case UUID() | Decimal():
            return str(value)
        case bytes() | memoryview():
            return base64.b64encode(value).decode()
    return value


def _head(user: User) -> str:
    head = {"format": FORMAT, "version": VERSION, "login": user.login, "exportedAt": iso(db_now())}
    return json.dumps(head, ensure_ascii=False) + "\n"


def _end(count: int) -> str:
    return json.dumps({"end": True, "rows": count}) + "\n"


def export_of(request: Any, user: User, caller_id: int) -> StreamingHttpResponse:
    """Sent as it is read; kept by no cache.

    Raises:
        TooManyAtOnce: the caller, or the process, has as many downloads under way as it may.
    """
    take_slot(request, DOWNLOADS, caller_id)
    name = f"{user.login}-{db_now():%Y-%m-%d}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-store"}
    return StreamingHttpResponse(stream(user), content_type=MEDIA_TYPE, headers=headers)
