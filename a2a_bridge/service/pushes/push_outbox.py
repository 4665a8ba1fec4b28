"""The outbox of pushes: in the order of each task's events, signed by the hub."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

import msgspec
from django.db.models import Exists, OuterRef, QuerySet

from a2a_bridge import settings
from a2a_bridge.models import Push, PushConfig
from a2a_bridge.service.pushes.configs import Secrets, unseal
from accounts.sealing import Unreadable
from accounts.signing import NoKey, sign
from kit.durations import seconds
from webhooks.service.sending import EACH_OWNER, HttpOutbox, SignedRequest, traced

MEDIA_TYPE = "application/a2a+json"
USER_AGENT = "clawbridge-push"
TOKEN = "X-A2A-Notification-Token"  # noqa: S105  the name of a header
SIGNATURE = "X-A2A-Notification-Signature"
RETRY_AFTER_S = tuple(map(seconds, (5, 30, 120, 600, 1800)))


class PushOutbox(HttpOutbox):
    """The pushes of all tasks. A push waits for those of earlier events to the same address."""

    rows = Push
    receiver = "config_id"
    shares: ClassVar[Mapping[str, int]] = {"config_id": 1, "config__caller_id": EACH_OWNER}
    retry_after_s = RETRY_AFTER_S
    unreadable = "what it is signed or authorized with cannot be read any more"

    def find_sendable(self) -> QuerySet[Any]:
        """See `Outbox`."""
        earlier = Push.objects.filter(
            config=OuterRef("config"), seq__lt=OuterRef("seq"), status__in=Push.UNSETTLED
        )
        rows = super().find_sendable().filter(~Exists(earlier), config__caller__is_active=True)
        return rows.select_related("config")

    def prepare(self, row: Push, now: datetime) -> SignedRequest | None:
        """See `Outbox`; None: there can be no request."""
        config, body = row.config, row.payload.encode("utf-8")
        try:
            secrets = unseal(config.sealed)
            signature = _signature(config, row.seq, body, now)
        except (Unreadable, NoKey):
            return None
        headers = {"Content-Type": MEDIA_TYPE, "User-Agent": USER_AGENT, SIGNATURE: signature}
        return SignedRequest(
            url=config.url, headers=traced(headers | _headers(secrets), row.traceparent), body=body
        )


def _headers(secrets: Secrets) -> dict[str, str]:
    headers = {TOKEN: secrets.token} if secrets.token else {}
    if secrets.scheme:
        headers["Authorization"] = f"{secrets.scheme} {secrets.credentials}".strip()
    return headers


def _signature(config: PushConfig, seq: int, body: bytes, now: datetime) -> str:
    """A JWT about this very attempt (docs/howto/receive-push.md). `jti` is the same in each attempt."""
    claims = {
        "iss": settings.PUBLIC_URL,
        "aud": config.url,
        "iat": int(now.timestamp()),
        "jti": f"{config.task_id}.{seq}",
        "taskId": config.task_id,
        "request_body_sha256": hashlib.sha256(body).hexdigest(),
    }
    return sign(msgspec.json.encode(claims), {"typ": "JWT"})
