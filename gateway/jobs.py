"""Work for the gateway that must be done whatever process lives. Every job may run twice, or late."""

from collections.abc import Iterator
from datetime import timedelta

from celery import shared_task

from gateway.models import FrameRecord, TeamPolicy
from kit import batches
from kit.clock import db_now


@shared_task(name="gateway.forget_frames", ignore_result=True)
def forget_frames() -> int:
    """Delete the records of frames that their teams keep no longer; how many."""
    now = db_now()
    chosen = dict(TeamPolicy.objects.values_list("owner_id", "frames_kept_days"))
    default_days = TeamPolicy._meta.get_field("frames_kept_days").get_default()
    gone = 0
    for owner_id in _find_teams():
        before = now - timedelta(days=chosen.get(owner_id, default_days))
        gone += batches.delete(FrameRecord.objects.filter(owner_id=owner_id, at__lt=before))
    return gone


def _find_teams() -> Iterator[int]:
    """The teams that have records: one look into the index for each, however many records they have."""
    rows = FrameRecord.objects.order_by("owner_id").values_list("owner_id", flat=True)
    owner_id = rows.first()
    while owner_id is not None:
        yield owner_id
        owner_id = rows.filter(owner_id__gt=owner_id).first()
