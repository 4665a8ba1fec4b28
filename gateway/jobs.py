"""The jobs of the gateway. Every job may run late, twice, or in two processes at once."""

from collections.abc import Iterator
from datetime import timedelta

from gateway.models import FrameRecord, Proposal, TeamPolicy, Vote
from gateway.service import protocol_tasks, queue_ends, queue_rows, session_recording
from kit import batches
from kit.clock import db_now
from kit.jobs import job

MAX_FRAMES = 1_000_000  # records of a team
OVERDUE_S = 20.0  # web processes end stored messages in time, and can tell the senders


@job("gateway.tend_letters")
def end_overdue_messages() -> int:
    """End stored messages whose time is up, and store replies that their senders did not take; how many."""
    return queue_ends.expire_due(overdue_s=OVERDUE_S) + queue_ends.store_untaken_replies()


@job("gateway.forget_letters")
def forget_messages(kept_days: int) -> int:
    """Delete stored messages that were delivered or died, so long after they came; returns their number."""
    return batches.delete(queue_rows.find_old_messages(kept_days))


@job("gateway.forget_protocol_tasks")
def forget_protocol_tasks(kept_days: int) -> int:
    """Delete tasks of the Agent Protocol that were not used for so long; returns the number of rows."""
    return protocol_tasks.forget_tasks(kept_days)


@job("gateway.forget_sessions")
def forget_sessions(kept_days: int) -> int:
    """Delete sessions to which nothing was added for so long; returns the number of rows."""
    return session_recording.forget_old(kept_days)


@job("gateway.forget_proposals")
def forget_proposals(kept_days: int) -> int:
    """Delete proposals that were decided so long ago, with their votes; returns their number."""
    old = Proposal.objects.filter(decided_at__lt=db_now() - timedelta(days=kept_days))
    batches.delete(Vote.objects.filter(proposal__in=old))
    return batches.delete(old)


@job("gateway.forget_frames")
def forget_frames() -> int:
    """Delete the records of frames that their teams keep no longer, and those beyond MAX_FRAMES; how many."""
    now = db_now()
    chosen = dict(TeamPolicy.objects.values_list("owner_id", "frames_kept_days"))
    default_days = TeamPolicy._meta.get_field("frames_kept_days").get_default()
    gone = 0
    for owner_id in _find_teams():
        before = now - timedelta(days=chosen.get(owner_id, default_days))
        of_team = FrameRecord.objects.filter(owner_id=owner_id)
        gone += batches.delete(of_team.filter(at__lt=before))
        too_old = of_team.order_by("-at").values_list("at", flat=True)[MAX_FRAMES : MAX_FRAMES + 1].first()
        if too_old is not None:
            gone += batches.delete(of_team.filter(at__lte=too_old))
    return gone


def _find_teams() -> Iterator[int]:
    """The teams that have records: one look into the index for each, however many records they have."""
    rows = FrameRecord.objects.order_by("owner_id").values_list("owner_id", flat=True)
    owner_id = rows.first()
    while owner_id is not None:
        yield owner_id
        owner_id = rows.filter(owner_id__gt=owner_id).first()
