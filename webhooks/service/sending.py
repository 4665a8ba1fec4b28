"""Sends deliveries by POST, and shows what was sent. The outbox of pushes sends by `HttpOutbox`, too."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts import sealing
from accounts.models import Credential
from kit import trace
from kit.async_db import release_before_waiting
from kit.clock import db_now
from kit.durations import seconds
from kit.outbox import AttemptEnd, AttemptResult, Outbox
from kit.safe_http import NotPublic, NotSent, SafeHttp, TargetRules, Unanswered
from webhooks import settings
from webhooks.models import Delivery, Sendable, Subscription
from webhooks.service.outbox import NOT_PAUSED, wake
from webhooks.wire import sign, write_body

RETRY_AFTER_S = tuple(map(seconds, (10, 60, 300, 1800, 7200, 21600)))
EACH_SUBSCRIPTION = 4
EACH_KEY = 2
EACH_OWNER = 8
USER_AGENT = "clawbridge-webhooks"
MAX_ERROR_CHARS = 200
MAX_RESPONSE_BYTES = 1_024
ALLOWED_BY = "the operator of the hub can allow such addresses with WEBHOOK_ALLOW_PRIVATE=1"
PURPOSE = b"webhook signing secrets"
MAX_OFFERED = 500
MAX_SHOWN_CHARS = 20_000
ENDS_EARLY = "…"  # no JSON ends so
Status = Sendable.Status


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRequest:
    """One attempt's POST, signed and ready."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class HttpOutbox(Outbox):
    """An outbox that sends its rows (`Sendable`) by POST. `unreadable`: the error if `prepare` made no request.

    The row of a delivery that was given up is kept, with the status failed.
    """

    name = "webhook"
    rows: ClassVar[type[Sendable]]
    unreadable: ClassVar[str]
    columns_while_sent: ClassVar[Mapping[str, Any]] = {"status": Status.SENDING}
    interrupted = Q(status=Status.SENDING)

    def __init__(self, http: SafeHttp) -> None:
        self._http = http

    def find_sendable(self) -> QuerySet[Any]:
        """See `Outbox`. Returns None while sending is paused."""
        return self.rows._default_manager.filter(NOT_PAUSED, status__in=Sendable.UNSETTLED)

    def send(self, prepared: SignedRequest | None) -> AttemptResult:
        """See `Outbox`: any 2xx is a success."""
        if prepared is None:
            return AttemptResult(is_success=False, error=self.unreadable)
        try:
            answer = self._http.send("POST", prepared.url, headers=prepared.headers, body=prepared.body)
        except (NotSent, Unanswered) as failure:
            return AttemptResult(is_success=False, error=str(failure))
        response = _text_of(answer.body[:MAX_RESPONSE_BYTES])
        return AttemptResult(is_success=200 <= answer.status < 300, status=answer.status, response=response)

    def store_end(self, leased: QuerySet[Any], end: AttemptEnd, **columns: Any) -> int:
        """See `Outbox`. `columns`: further columns to store."""
        columns |= {"last_status": end.outcome.status, "last_error": end.outcome.error[:MAX_ERROR_CHARS]}
        if end.outcome.is_success:
            columns |= {"status": Status.DELIVERED, "delivered_at": end.at}
        else:
            columns["status"] = Status.FAILED if end.is_given_up else Status.PENDING
        return leased.update(next_attempt_at=end.retry_at, **columns)


class WebhookOutbox(HttpOutbox):
    """The deliveries of all webhooks."""

    rows = Delivery
    receiver = "subscription_id"
    shares: ClassVar[Mapping[str, int]] = {
        "subscription_id": EACH_SUBSCRIPTION,
        "subscription__credential_id": EACH_KEY,
        "subscription__owner_id": EACH_OWNER,
    }
    retry_after_s = RETRY_AFTER_S
    unreadable = "its signing secret cannot be read any more: roll it"

    def find_sendable(self) -> QuerySet[Any]:
        """See `Outbox`."""
        key = Credential.objects.live().filter(pk=OuterRef("subscription__credential_id"))
        rows = super().find_sendable().filter(Q(subscription__credential=None) | Exists(key))
        rows = rows.filter(subscription__owner__is_active=True, subscription__paused_at=None)
        return rows.select_related("subscription")

    def prepare(self, row: Delivery, now: datetime) -> SignedRequest | None:
        """See `Outbox`. Returns None if the signing secret cannot be read."""
        try:
            secrets = [unseal_secret(sealed) for sealed in row.subscription.sealed_secrets(now)]
        except sealing.SecretUnreadable:
            return None
        body = body_of(row)
        headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT}
        headers |= sign(row.event_id, row.type, body, secrets, now)
        return SignedRequest(url=row.subscription.url, headers=traced(headers, row.traceparent), body=body)

    def store_end(self, leased: QuerySet[Any], end: AttemptEnd, **columns: Any) -> int:
        """See `Outbox`."""
        receiver = Subscription.objects.filter(pk=end.row.subscription_id)
        if end.outcome.is_success:
            receiver.note_success(end.at)
        else:
            receiver.note_failure(exhausted=end.is_given_up)
        return super().store_end(leased, end, last_response=end.outcome.response, **columns)


def client() -> SafeHttp:
    """The HTTP client for receivers, by the operator's settings."""
    return SafeHttp(TargetRules(ports=settings.WEBHOOK_PORTS, allows_private=settings.WEBHOOK_ALLOW_PRIVATE))


def check_url(url: str) -> None:
    """Check a receiver's URL as sending would now.

    The check may take seconds, during which no database connection is held.

    Raises:
        NotSent: the URL is not allowed; the text says which setting would allow it.
    """
    release_before_waiting()
    try:
        client().check(url)
    except NotPublic as refused:
        raise NotSent(f"{refused}; {ALLOWED_BY}") from None


def send_again(delivery: Delivery) -> bool:
    """Queue a delivery again from its first attempt, under the same id; False if it is being sent."""
    idle = Delivery.objects.filter(pk=delivery.pk).exclude(status=Status.SENDING)
    if not idle.update(status=Status.PENDING, attempts=0, next_attempt_at=db_now(), delivered_at=None):
        return False
    transaction.on_commit(wake)
    return True


def traced(headers: Mapping[str, str], traceparent: str) -> Mapping[str, str]:
    """The headers, with a traceparent for this attempt if the event is part of a trace."""
    return {**headers, trace.HEADER: trace.follow(traceparent)} if traceparent else headers


def body_of(delivery: Delivery) -> bytes:
    """The bytes of a delivery, the same in each attempt."""
    return write_body(delivery.event_id, delivery.type, delivery.queued_at, delivery.payload)


def seal_secret(secret: str) -> str:
    """The secret, sealed for storage."""
    return sealing.seal(secret, PURPOSE)


def unseal_secret(sealed: str) -> str:
    """The secret from its sealed form.

    Raises:
        SecretUnreadable: the key that sealed the secret is not among the hub's keys.
    """
    return sealing.unseal(sealed, PURPOSE)


def reseal_secrets() -> tuple[int, int]:
    """Seal every secret anew with the newest key; returns how many subscriptions were resealed, and how many could
    not be read.
    """
    return sealing.reseal_all(Subscription.objects.all(), PURPOSE, "secret", "previous_secret")


def _text_of(body: bytes) -> str:
    """The bytes as text that every database takes; bytes that are no UTF-8 are replaced."""
    return body.decode("utf-8", "replace").replace("\0", "\ufffd")


def find_deliveries(
    subscription: Subscription, *, status: str = "", event: str = "", agent: str = ""
) -> QuerySet[Delivery]:
    """The deliveries of a webhook, newest first. An empty condition fits any; `agent`: a handle in any case."""
    found: QuerySet[Delivery] = Delivery.objects.filter(subscription=subscription).order_by("-pk")
    if not (event + agent).isprintable():  # no name has such a character, and databases refuse NUL
        return found.none()
    wanted = {"status": status, "type": event, "agent_handle__iexact": agent.removeprefix("@")}
    return found.filter(**{name: value for name, value in wanted.items() if value})


def find_filter_choices(subscription: Subscription) -> dict[str, list[str]]:
    """The `events` and `agents` of the newest deliveries of a webhook, by which deliveries can be filtered."""
    newest = Delivery.objects.filter(subscription=subscription).order_by("-pk")[:MAX_OFFERED]
    pairs = set(newest.values_list("type", "agent_handle"))
    return {"events": sorted({one for one, _ in pairs}), "agents": sorted({agent for _, agent in pairs if agent})}


def show_body(delivery: Delivery) -> str:
    """The body of a delivery, indented for reading; a long body is cut."""
    text = json.dumps(json.loads(body_of(delivery)), indent=2, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}{ENDS_EARLY}"
