"""Rows of every table with vectors in every column of texts; run in a process of its own on a hub's database.

`owner_of_everything` writes a word wherever a user, an agent or a venue can write one. Each column that holds the
word gets vectors instead, past the checks of requests. Vector `v` of column `c` calls `pwned(1000 * c + v)`, so
that a page tells which columns it shows, and which vectors of each.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

from django.apps import apps
from django.db import IntegrityError, models, transaction
from django.utils import timezone

from a2a_bridge.models import AnswerShare, PushConfig, RecordedExchange, StoredTask, Thread
from a2a_bridge.service.tasks.stored import VERSION, encode
from a2a_bridge.wire.task import Artifact, Message, Role, State, Task
from accounts.models import User
from agents.models import Agent, FailureGroup, File, RemoteServer, Session, Turn
from agents.models.remote import REMOTE_LINK
from agents.transcript.pieces import Part
from agnt.models import Booking, Venue
from evaluations.models import EvaluationRun, SavedQuestion
from gateway.models import Letter, Proposal, ProtocolArtifact
from tests.browser.vectors import RUN, VECTORS
from tests.data.rows import owner_of_everything
from tests.native.rows import make_agent, person
from webhooks.models import Delivery, Subscription

# Columns whose words the hub checks, and addresses of pages hold: a vector there would be no text of a page.
CHECKED = {
    *("login", "handle", "handle_key", "agent_handle", "routing_name", "email", "to", "key_id", "slug", "digest"),
    *("task_id", "config_id", "object_id", "key", "event_id", "gateway.TeamAgent.name"),
}
# Columns that get vectors in all rows: `owner_of_everything` leaves them empty, or writes other words.
MORE = {
    "a2a_bridge": "Push.last_error RecordedExchange.response_body",
    "accounts": "Credential.app_name Group.name LoginCode.app_name ProviderIdentity.username "
    "ScimGroup.external_id ScimGroup.display_name",
    "admin": "LogEntry.object_repr",
    "agents": "File.mime PermissionRequest.input_preview PermissionRequest.tool RemoteServer.card_refusal "
    "RemoteServer.last_failure Session.channel_version Turn.failure_text",
    "agnt": "Booking.slot_id Booking.slot_time Booking.venue_booking_id "
    "Cancellation.last_error Interaction.intent Interaction.recipient Interaction.source Interaction.status "
    "Venue.area Venue.category Venue.city Venue.price_range Venue.url",
    "evaluations": "EvaluationResult.detail EvaluationRun.card_version SavedQuestion.judge",
    "gateway": "FrameRecord.message_id FrameRecord.outcome FrameRecord.session_id FrameRecord.type "
    "Letter.correlation_id Letter.reason Proposal.category Proposal.steward ProtocolArtifact.mime "
    "ProtocolArtifact.relative_path SessionLog.imported_from",
    "webhooks": "Delivery.last_error Delivery.last_response Delivery.type",
}
IN_ALL_ROWS = {f"{app}.{name}" for app, names in MORE.items() for name in names.split()}
VECTORS_AT_MOST = 1000  # for the numbers in calls
WHOLE_CHARS = 14_000
FEW_CHARS = 300
KEYS_OF_TABLE = 2


def make_everything(owners: int, copies: int) -> dict[str, Any]:
    """Owners with everything, and copies of each row, except where there can be no second one.

    Returns `owners`, the ids of each one's rows; `columns`, the labels of the columns in their order; `tried`, the
    number of vectors in each; `keys`, the keys of rows by label of the table.
    """
    with transaction.atomic():
        other, words = person("other"), [f"word{number:03}x" for number in range(owners)]
        found = [_ids_of(word, owner_of_everything(word, other).session) for word in words]
        for model in {model for _, model, _ in _columns()}:
            _copy_rows(model, words, copies)
        tried: dict[str, int] = {}
        for number, (label, model, name) in enumerate(_columns()):
            found_words = [*words, ""] if label in IN_ALL_ROWS else words
            used = _replace(model, name, found_words, _vectors(number))
            if used:
                tried[label] = used
    return {"owners": found, "columns": [label for label, _, _ in _columns()], "tried": tried, "keys": _keys()}


def _vectors(column: int) -> list[str]:
    return [one.replace(RUN, f"pwned({VECTORS_AT_MOST * column + number})") for number, one in enumerate(VECTORS)]


def _keys() -> dict[str, list[str]]:
    """The keys of some rows of each table."""
    return {
        model._meta.label_lower: [str(one.pk) for one in model._default_manager.order_by("pk")[:KEYS_OF_TABLE]]
        for model in apps.get_models()
    }


def _columns() -> Iterator[tuple[str, type[models.Model], str]]:
    for model in apps.get_models():
        for column in model._meta.concrete_fields:
            if isinstance(column, models.CharField | models.TextField | models.JSONField):
                label = f"{model._meta.label}.{column.name}"
                if not ({column.name, label} & CHECKED or column.choices or column.primary_key):
                    yield label, model, column.name


def _copy_rows(model: type[models.Model], words: list[str], copies: int) -> None:
    """Copy the rows with a word in them, with other words where a value must be unique."""
    if model._meta.pk.get_internal_type() != "BigAutoField":
        return
    columns = [column for column in model._meta.concrete_fields if not column.primary_key]
    rows = [{column: getattr(row, column.attname) for column in columns} for row in model._default_manager.all()]
    made = [
        model(**{column.attname: _vary(column, value, words, number) for column, value in row.items()})
        for row in rows
        if _holds(list(row.values()), words)
        for number in range(copies)
    ]
    model._default_manager.bulk_create(made, ignore_conflicts=True, batch_size=100)


def _vary(column: Any, value: Any, words: list[str], number: int) -> Any:
    if isinstance(column, models.UUIDField) and column.unique:
        return uuid4()
    if (
        isinstance(value, str)
        and not column.is_relation
        and (column.unique or _holds(value, words))
        and value[:1] not in ("{", "[")
    ):
        return f"{value}{number}"
    return value


def _holds(value: Any, words: list[str]) -> bool:
    text = json.dumps(value, default=str)
    return any(word in text for word in words)


def _replace(model: type[models.Model], name: str, words: list[str], vectors: list[str]) -> int:
    """Put vectors for the words in a column; the number of vectors that it holds whole.

    The first row has them all, also where the column is for fewer characters, which SQLite does not check; each
    other row has the next that fit.
    """
    column = model._meta.get_field(name)
    at_most = min(getattr(column, "max_length", None) or FEW_CHARS, FEW_CHARS)
    fitting = [one for one in vectors if len(one) <= at_most] or vectors
    tried, at, rows = 0, 0, []
    for row in model._default_manager.all():
        value = getattr(row, name)
        if not _holds(value, words):
            continue
        if rows:
            text, at = _take(fitting, at, at_most)
        else:
            text, tried = _take(vectors, 0, WHOLE_CHARS)
        setattr(row, name, _dress(value, text, words))
        rows.append(row)
    try:
        with transaction.atomic():
            model._default_manager.bulk_update(rows, [name], batch_size=100)
    except (
        IntegrityError
    ):  # a row keeps the word where another one has these vectors, and none may have them twice
        for row in rows:
            with suppress(IntegrityError), transaction.atomic():
                row.save(update_fields=[name])
    return tried


def _take(vectors: list[str], at: int, at_most: int) -> tuple[str, int]:
    """The next vectors, each whole, as far as there is room; at least one, cut if need be."""
    text = vectors[at % len(vectors)][:at_most]
    at += 1
    while at % len(vectors) and len(text) + 1 + len(vectors[at % len(vectors)]) <= at_most:
        text += " " + vectors[at % len(vectors)]
        at += 1
    return text, at


def _dress(value: Any, text: str, words: list[str]) -> Any:
    """A value with a text for every word in it, also in JSON."""
    if isinstance(value, dict):
        return {_dress(name, text, words): _dress(one, text, words) for name, one in value.items()}
    if isinstance(value, list):
        return [_dress(one, text, words) for one in value]
    if not isinstance(value, str | None):
        return value
    if value and value[:1] in ("{", "["):
        return json.dumps(_dress(json.loads(value), text, words))
    return text if any(word in (value or "") for word in words) else value


def _ids_of(word: str, session: str) -> dict[str, str]:
    """The ids that paths of pages hold, and the token of the owner's session."""
    agent = Agent.objects.get(handle=f"{word}-login/{word}-agent")
    owner = agent.owner
    booking = Booking.objects.get(network__owner=owner)
    saved, run = (
        SavedQuestion.objects.get(question_set__agent=agent),
        EvaluationRun.objects.get(question_set__agent=agent),
    )
    asked, reported = Turn.objects.get(caller=owner, agent__owner__login="other"), Turn.objects.get(agent=agent)
    Venue.objects.filter(network__owner=owner).update(agent=None, url=word)  # it has one of the two
    sent = {
        "chat_id": asked.chat_id,
        "request_headers": json.dumps({word: word}),
        "response_headers": json.dumps({word: word}),
    }
    RecordedExchange.objects.filter(caller=owner).update(**sent)
    skill = {"id": word, "name": word, "description": word, "tags": [word], "examples": [word]}
    Agent.objects.filter(pk=agent.pk).update(skills=[skill], input_modes=[word], output_modes=[word])
    told = Subscription.objects.get(owner=owner)
    return {
        "token_of_session": session,
        "agent": str(agent.pk),
        "handle": agent.handle,
        "session": str(agent.session.public_id),
        "far": str(_make_remote(word, owner).pk),
        "token": str(owner.credentials.filter(kind="channel").latest("pk").pk),
        "told": str(told.pk),
        "delivery": str(Delivery.objects.get(subscription=told).pk),
        "ask": asked.chat_id,
        "reported": reported.chat_id,
        "proposal": str(Proposal.objects.get(owner=owner).pk),
        "failure": str(FailureGroup.objects.get(agent=agent).pk),
        "set": str(saved.question_set_id),
        "saved": str(saved.pk),
        "evaluation": str(run.pk),
        "network_venue": str(booking.venue.public_id),
        "network_key": str(booking.key.public_id),
        "network_booking": str(booking.public_id),
        "group": f"team-{owner.pk}",
        "file": str(File.objects.filter(session=agent.session).latest("pk").pk),
        "letter": str(Letter.objects.get(owner=owner).pk),
        "share": str(AnswerShare.objects.get(owner=owner).pk),
        "team_agent": word,
        **_make_thread(word, owner),
        **_protocol_ids(owner),
    }


def _make_thread(word: str, owner: User) -> dict[str, str]:
    """Give the task of the owner's thread a content with the word in each kind of part; the ids in addresses."""
    thread = Thread.objects.get(caller=owner)
    row = StoredTask.objects.get(caller=owner)
    parts = (
        Part(text=word),
        Part(raw="YWJj", filename=word, media_type=word),
        Part(url=word, filename=word, media_type=word, metadata={word: word}),
        Part(data={word: [word]}, filename=word),
    )
    task = Task(
        id=row.pk,
        caller_id=owner.pk,
        handle=row.handle,
        context_id=word,
        chat_id=row.chat_id,
        home="h",
        state=State.COMPLETED,
        updated_at=row.updated_at.isoformat(),
        history=(Message("m1", Role.USER, parts), Message("m2", Role.AGENT, parts)),
        message=Message("m3", Role.AGENT, parts),
        artifacts=(Artifact("reply-1", (Part(text=word),)), Artifact(word, parts, name=word, description=word)),
    )
    snapshot = encode(task).decode()
    StoredTask.objects.filter(pk=row.pk).update(snapshot=snapshot, schema_version=VERSION, is_indexed=True)
    PushConfig.objects.filter(caller=owner).update(task_id=row.pk)
    asked, _, slug = row.handle.partition("/")
    return {
        "thread": str(thread.public_id),
        "task": row.pk,
        "push_config": word,
        "asked_owner": asked,
        "asked_slug": slug,
    }


def _protocol_ids(owner: User) -> dict[str, str]:
    artifact = ProtocolArtifact.objects.get(task__owner=owner)
    return {
        "protocol_task": str(artifact.task.public_id),
        "protocol_step": str(artifact.step.public_id),
        "protocol_artifact": str(artifact.public_id),
    }


def _make_remote(word: str, owner: User) -> Agent:
    """Give the owner's remote server an agent."""
    agent = make_agent(owner, f"{word}-far", name=word)
    Session.objects.filter(pk=agent.session_id).update(link=REMOTE_LINK)
    RemoteServer.objects.filter(session__owner=owner).update(session=agent.session, card_changed_at=timezone.now())
    return agent
