"""Queues `staff.acted` for webhooks of administrators, in the transaction that adds an entry to the audit log."""

from collections.abc import Sequence

from django.contrib.admin.models import LogEntry
from django.db import transaction

from accounts.access import ACTS
from accounts.audit_log import show_act
from webhooks.models import Subscription
from webhooks.service.outbox import OutboxEvent, record
from webhooks.wire import STAFF_ACTED

GAVE_UP = ACTS["is_staff", False]


@transaction.atomic
def queue_staff_acts(entries: Sequence[LogEntry]) -> None:
    """Queue a delivery of each entry of a member of the staff; one query if no administrator subscribes.

    Only administrators who are active now get them: a webhook of a former one gets nothing more.
    """
    subscribed = Subscription.objects.filter(
        events__contains=STAFF_ACTED,
        credential=None,
        paused_at=None,
        owner__is_staff=True,
        owner__is_active=True,
    )
    audience = set(subscribed.values_list("owner_id", flat=True))
    if not audience:
        return
    stored = LogEntry.objects.filter(pk__in=[one.pk for one in entries]).select_related("user", "content_type")
    acts = [one for one in stored.order_by("pk") if one.user.is_staff or _gave_up_rights(one)]
    record([OutboxEvent(type=STAFF_ACTED, audience=audience, payload=show_act(one)) for one in acts])


def _gave_up_rights(entry: LogEntry) -> bool:
    """True if the user was of the staff until this act."""
    return entry.object_id == str(entry.user_id) and GAVE_UP in entry.change_message
