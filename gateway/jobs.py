"""Work of the gateway that must be done whatever process lives. Every job may run twice, or late."""

from datetime import timedelta

from celery import shared_task

from gateway.models import Proposal, Vote
from kit import batches
from kit.clock import db_now


@shared_task(name="gateway.forget_proposals", ignore_result=True)
def forget_proposals(kept_days: int) -> int:
    """Delete proposals that were decided longer ago than that, with their votes; how many."""
    old = Proposal.objects.filter(decided_at__lt=db_now() - timedelta(days=kept_days))
    batches.delete(Vote.objects.filter(proposal__in=old))
    return batches.delete(old)
