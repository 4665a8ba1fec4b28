"""Proposals of teams for their owners to look at."""

from django.contrib import admin

from accounts.admin_site import OwnerScopedAdmin, site
from gateway.models import Proposal, Vote


@admin.register(Proposal, site=site)
class ProposalAdmin(OwnerScopedAdmin):
    """What teams decided, or have to decide."""

    owner_lookup = "owner"
    list_display = ("key", "proposer", "state", "has_consensus", "owner", "created_at", "deadline", "decided_at")
    list_filter = ("state", "created_at")
    list_select_related = ("owner",)
    search_fields = ("key", "proposer")
    ordering = ("-pk",)
    fields = (
        *("key", "alias", "proposer", "text", "reasoning", "category", "members", "steward", "threshold"),
        *("state", "has_consensus", "tie_broken_by", "owner", "created_at", "deadline", "decided_at"),
    )


@admin.register(Vote, site=site)
class VoteAdmin(OwnerScopedAdmin):
    """Each vote as it came, changed and late ones among them."""

    owner_lookup = "proposal__owner"
    list_display = ("proposal", "voter", "vote", "counts", "is_late", "voted_at")
    list_filter = ("vote", "is_late", "voted_at")
    list_select_related = ("proposal",)
    search_fields = ("voter",)
    ordering = ("-pk",)
    fields = ("proposal", "voter", "vote", "reasoning", "confidence", "voted_at", "counts", "is_late")
