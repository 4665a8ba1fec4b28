"""Rows of a session: events, messages, shares, files, permission requests; and their announcements."""

import itertools
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import User
from agents.models import (
    Attachment,
    Blob,
    Event,
    File,
    OpMessage,
    PermissionRequest,
    Process,
    Session,
    Share,
    TokenUsage,
)
from agents.transcript.announcements import AddressedMessage

ROLES = ["viewer", "prompter", "approver"]
_numbers = itertools.count(1)


def ago(minutes: float) -> datetime:
    return timezone.now() - timedelta(minutes=minutes)


def lend(session: Session, user: User, role: str = "viewer") -> Share:
    return Share.objects.create(session=session, user=user, role=role, shared_by=session.owner)


def add_events(session: Session, count: int = 1, **fields: Any) -> list[Event]:
    """Chat replies, written in order, unless `fields` say otherwise."""
    values = {"kind": "chat", "type": "reply", "payload": '{"text":"hi"}', "ts": timezone.now(), **fields}
    return [Event.objects.create(session=session, **values) for _ in range(count)]


def add_messages(session: Session, count: int = 1, **fields: Any) -> list[OpMessage]:
    values = {"author": session.owner, "text": "look", "mentions": ["bob"], **fields}
    return [OpMessage.objects.create(session=session, **values) for _ in range(count)]


def add_file(session: Session, data: bytes = b"bytes", **fields: Any) -> File:
    """A live file, or one deleted at `deleted_at`; equal bytes share a blob."""
    digest = sha256(data).hexdigest()
    blob = None
    if not fields.get("deleted_at"):
        blob, _ = Blob.objects.get_or_create(pk=digest, defaults={"size": len(data), "data": data})
    values = {
        "filename": "a.txt",
        "mime": "text/plain",
        "uploader": session.owner,
        "expires_at": ago(-60),
        **fields,
    }
    return File.objects.create(session=session, blob=blob, sha256=digest, size=len(data), **values)


def request_permission(session: Session, **fields: Any) -> PermissionRequest:
    values = {"request_id": f"r{next(_numbers)}", "tool": "Bash", "input_preview": "ls", "expires_at": ago(-10)}
    return PermissionRequest.objects.create(session=session, **{**values, **fields})


def use_tokens(session: Session, count: int = 1, **fields: Any) -> list[TokenUsage]:
    values = {"cc_session_id": "cc", "model": "m", "reason": "hourly", "captured_at": timezone.now(), **fields}
    return [TokenUsage.objects.create(session=session, owner=session.owner, **values) for _ in range(count)]


def attach(session: Session, user: User) -> Attachment:
    """An operator watches the session, at a process that beats."""
    process = Process.objects.create(id=f"w{next(_numbers)}", host="here", pid=1)
    return Attachment.objects.create(session=session, process=process, user=user)


def post_escaped(client: APIClient, path: str, body: Any) -> Any:
    """POST JSON in ASCII, as a client may write a lone surrogate."""
    return client.post(path, json.dumps(body), content_type="application/json")


class Told:
    """Collects what is announced after commits."""

    def __init__(self) -> None:
        self.addressed: list[AddressedMessage] = []

    def __call__(self, addressed: Sequence[AddressedMessage]) -> None:
        self.addressed += addressed

    def of(self, kind: type) -> list[Any]:
        return [message for _, message in self.addressed if isinstance(message, kind)]
