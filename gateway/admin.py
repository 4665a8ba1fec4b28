"""Teams and their sessions for their owners. Texts of sessions and stored messages are sealed, and not shown."""

from django.contrib import admin

from accounts.admin_site import OwnerScopedAdmin, site
from gateway.models import EnvelopeKey, FrameRecord, Letter, Proposal, SessionLog, TeamAgent, TeamPolicy, Vote
from gateway.models.team import RULES


class TeamRowsAdmin(OwnerScopedAdmin):
    """The rows of a team, newest first."""

    owner_lookup = "owner"
    list_select_related = ("owner",)
    ordering = ("-pk",)


@admin.register(TeamAgent, site=site)
class TeamAgentAdmin(TeamRowsAdmin):
    """The agents of a team, each with its role."""

    list_display = ("name", "role", "is_active", "status", "status_at", "owner")
    list_filter = ("is_active", "status")
    search_fields = ("name", "role")
    fields = (
        *("name", "role", "is_active", "status", "status_at", "config", "may_send_to", "may_hear_from"),
        *("owner", "created_at"),
    )


@admin.register(TeamPolicy, site=site)
class TeamPolicyAdmin(TeamRowsAdmin):
    """The rules of teams, where their owners have set any."""

    list_display = ("owner", "queues_messages", "threshold", "requires_signature", "frames_kept_days")
    list_filter = ("threshold",)
    fields = ("owner", *RULES)


@admin.register(SessionLog, site=site)
class SessionLogAdmin(TeamRowsAdmin):
    """The messages of a session between agents: their number, size and time."""

    list_display = ("session_id", "agent", "owner", "state", "entries", "bytes", "last_entry_at")
    list_filter = ("state",)
    search_fields = ("session_id", "agent", "owner__login")
    fields = (
        *("session_id", "agent", "owner", "state", "entries", "bytes", "compacted", "created_at"),
        *("last_entry_at", "committed_at", "archived_at", "locked_by", "locked_until", "imported_from"),
    )


@admin.register(Letter, site=site)
class LetterAdmin(TeamRowsAdmin):
    """Messages that were stored for agents, with their states."""

    list_display = (
        "message_id",
        "recipient",
        "sender",
        "priority",
        "state",
        "reason",
        "received_at",
        "expires_at",
    )
    list_filter = ("state", "priority")
    list_select_related = ("recipient",)
    search_fields = ("message_id", "sender", "recipient__routing_name")
    fields = (
        *("owner", "recipient", "sender", "message_id", "priority", "state", "reason", "wants_response"),
        *("bytes", "received_at", "expires_at", "delivered_at", "read_at"),
    )


@admin.register(Proposal, site=site)
class ProposalAdmin(TeamRowsAdmin):
    """The proposals of teams, decided or open."""

    list_display = ("key", "proposer", "state", "has_consensus", "owner", "created_at", "deadline", "decided_at")
    list_filter = ("state", "created_at")
    search_fields = ("key", "proposer")
    fields = (
        *("key", "alias", "proposer", "text", "reasoning", "category", "members", "steward", "threshold"),
        *("state", "has_consensus", "tie_broken_by", "owner", "created_at", "deadline", "decided_at"),
    )


@admin.register(Vote, site=site)
class VoteAdmin(TeamRowsAdmin):
    """All votes as they came, also changed and late votes."""

    owner_lookup = "proposal__owner"
    list_display = ("proposal", "voter", "vote", "counts", "is_late", "voted_at")
    list_filter = ("vote", "is_late", "voted_at")
    list_select_related = ("proposal",)
    search_fields = ("voter",)
    fields = ("proposal", "voter", "vote", "reasoning", "confidence", "voted_at", "counts", "is_late")


@admin.register(FrameRecord, site=site)
class FrameRecordAdmin(TeamRowsAdmin):
    """The record of frames; no row can be changed."""

    list_display = (
        *("at", "owner", "source", "destination", "type"),
        *("outcome", "error_code", "bytes", "latency_ms", "message_id"),
    )
    list_filter = ("outcome", "type", "at")
    search_fields = ("source", "destination", "message_id")
    fields = (*list_display, "session_id")


@admin.register(EnvelopeKey, site=site)
class EnvelopeKeyAdmin(TeamRowsAdmin):
    """The keys with which a team signs; REST makes and deletes them."""

    list_display = ("key_id", "name", "owner", "created_at")
    fields = list_display
