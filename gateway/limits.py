"""The limits of an account that count rows of `gateway`. A team is the agents of one account."""

from collections.abc import Callable
from dataclasses import replace

from django.db.models import Q, Sum

from accounts.quotas import MEBIBYTE, MIB, AccountLimit, CountedRows
from gateway import settings
from gateway.models import EnvelopeKey, Letter, Proposal, ProtocolTask, SessionLog, TeamAgent
from gateway.wire.errors import FrameRefused, GatewayErrorCode


def frame_error(code: GatewayErrorCode, retry_after_ms: int = 0) -> Callable[[str, str], FrameRefused]:
    """Makes the error for a frame that is refused because of a limit."""
    return lambda text, reason: FrameRefused(code, text, reason=reason, retry_after_ms=retry_after_ms)


SESSIONS, SESSIONS_MB = 2_000, 128
TASK_FULL = "you have {{held}} {} of this task, and {{most}} are the most: remove some first"

TEAM_AGENTS = AccountLimit(
    "agents of a team",
    1_000,
    counted=[CountedRows(TeamAgent.objects.all)],
    refusal="a team has at most {most} agents: remove some first",
    code="team_full",
    counts="those of deleted sessions too",
    one_more="1001 `team_full`",
)
TEAM_KEYS = AccountLimit(
    "keys of a team",
    20,
    counted=[CountedRows(EnvelopeKey.objects.all)],
    refusal="a team has at most {most} keys: delete one first",
)
LETTERS = AccountLimit(
    "letters",
    (settings, "LETTERS_PER_OWNER"),
    counted=[CountedRows(Letter.objects.all)],
    refusal="the inboxes of this team are full",
    code="inbox_full",
    refused_as=frame_error(GatewayErrorCode.AGENT_BUSY),
    one_more="3003 `inbox_full`",
)
LETTERS_TEXT = replace(
    LETTERS,
    name="text of letters",
    limit=(settings, "LETTERS_MB_PER_OWNER"),
    counted=[CountedRows(Letter.objects.all, number=Sum("bytes"))],
    unit=MIB,
)
TEAM_SESSIONS = AccountLimit(
    "sessions of a team",
    SESSIONS,
    counted=[CountedRows(SessionLog.objects.all)],
    refusal=f"a team has at most {SESSIONS} sessions, and {SESSIONS_MB * MEBIBYTE} bytes: delete some first",
    refused_as=frame_error(GatewayErrorCode.INVALID_CONTENT),
    counts="at the [gateway](gateway.md#sessions), archived ones too",
    one_more="2005 `quota_exceeded` for create and import; messages replace the oldest",
)
TEAM_SESSIONS_TEXT = replace(
    TEAM_SESSIONS,
    name="text of sessions of a team",
    limit=SESSIONS_MB,
    counted=[CountedRows(SessionLog.objects.all, number=Sum("bytes"))],
    unit=MIB,
)
KEPT_PROPOSALS = AccountLimit(
    "kept proposals",
    10_000,
    counted=[CountedRows(Proposal.objects.all)],
    refusal="the team has {most} {name}, as many as it may",
    code="too_many_proposals",
    refused_as=frame_error(GatewayErrorCode.RATE_LIMITED, retry_after_ms=60_000),
    counts="of a team",
    one_more="1005 `too_many_proposals`",
)
OPEN_PROPOSALS = replace(
    KEPT_PROPOSALS,
    name="open proposals",
    limit=100,
    counted=[CountedRows(Proposal.objects.all, where=Q(decided_at=None))],
)
VOTES = replace(
    KEPT_PROPOSALS,
    name="votes on a proposal",
    limit=1_000,
    counted=(),
    refusal="this proposal has as many votes as it may, changed ones among them",
    code="too_many_votes",
    counts="changed and late ones too",
    one_more="1005 `too_many_votes`",
)
PROTOCOL_TASKS = AccountLimit(
    "tasks of the Agent Protocol",
    1_000,
    counted=[CountedRows(ProtocolTask.objects.all)],
    counts="[their](gateway.md#agent-protocol) inputs, outputs and artifacts count as storage, with the files",
)
STEPS = AccountLimit("steps of a task of the Agent Protocol", 1_000, refusal=TASK_FULL.format("steps"))
ARTIFACTS = AccountLimit(
    "artifacts of a task of the Agent Protocol",
    100,
    refusal=TASK_FULL.format("artifacts"),
    one_more="an upload: 429 `quota_exceeded`; an artifact of the agent is not kept",
)
