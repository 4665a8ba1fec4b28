"""The limits of an account that count rows of `gateway`. A team is the agents of one account."""

from django.db.models import Q, Sum

from accounts.quotas import MEBIBYTE, MIB, AccountLimit, CountedRows
from gateway import settings
from gateway.models import EnvelopeKey, Letter, Proposal, ProtocolTask, SessionLog, TeamAgent

MOST_TEAM_SESSIONS, MOST_TEAM_SESSIONS_MB = 2_000, 128
TEAM_SESSIONS_FULL = (
    f"a team has at most {MOST_TEAM_SESSIONS} sessions, and {MOST_TEAM_SESSIONS_MB * MEBIBYTE} bytes:"
    " delete some first"
)
TEAM_SESSIONS_REFUSED = "2005 `quota_exceeded` for create and import; messages replace the oldest"
INBOXES_FULL = "the inboxes of this team are full"
INBOX_FULL = "inbox_full"
TOO_MANY_PROPOSALS = "too_many_proposals"

TEAM_AGENTS = AccountLimit(
    name="agents of a team",
    fixed=1_000,
    counted=[CountedRows("agents of a team", TeamAgent.objects.all, "owner")],
    refusal="a team has at most {most} agents: remove some first",
    code="team_full",
    counts="those of deleted sessions too",
    one_more="1001 `team_full`",
)
TEAM_KEYS = AccountLimit(
    name="keys of a team",
    fixed=20,
    counted=[CountedRows("keys of a team", EnvelopeKey.objects.all, "owner")],
    refusal="a team has at most {most} keys: delete one first",
    counts="keys that sign frames",
)
LETTERS = AccountLimit(
    name="letters",
    settings=settings,
    setting="LETTERS_PER_OWNER",
    counted=[CountedRows("letters", Letter.objects.all, "owner")],
    refusal=INBOXES_FULL,
    code=INBOX_FULL,
    counts="messages of the gateway stored for its agents; of one sender a quarter may wait, and of all agents of "
    "another owner together",
    one_more="3003 `inbox_full`",
)
LETTERS_TEXT = AccountLimit(
    name="text of letters",
    settings=settings,
    setting="LETTERS_MB_PER_OWNER",
    unit=MIB,
    counted=[CountedRows("text of letters", Letter.objects.all, "owner", number=Sum("bytes"))],
    refusal=INBOXES_FULL,
    code=INBOX_FULL,
    counts="of the same messages",
    one_more="3003 `inbox_full`",
)
TEAM_SESSIONS = AccountLimit(
    name="sessions of a team",
    fixed=MOST_TEAM_SESSIONS,
    counted=[CountedRows("sessions of a team", SessionLog.objects.all, "owner")],
    refusal=TEAM_SESSIONS_FULL,
    counts="at the [gateway](gateway.md#sessions), archived ones too",
    one_more=TEAM_SESSIONS_REFUSED,
)
TEAM_SESSIONS_TEXT = AccountLimit(
    name="text of sessions of a team",
    fixed=MOST_TEAM_SESSIONS_MB,
    unit=MIB,
    counted=[CountedRows("text of sessions of a team", SessionLog.objects.all, "owner", number=Sum("bytes"))],
    refusal=TEAM_SESSIONS_FULL,
    counts="of the same sessions",
    one_more=TEAM_SESSIONS_REFUSED,
)
OPEN_PROPOSALS = AccountLimit(
    name="open proposals",
    fixed=100,
    counted=[CountedRows("open proposals", Proposal.objects.all, "owner", Q(decided_at=None))],
    refusal="the team has {most} open proposals, as many as it may",
    code=TOO_MANY_PROPOSALS,
    counts="of its team",
    one_more="1005 `too_many_proposals`",
)
PROPOSALS = AccountLimit(
    name="proposals",
    fixed=10_000,
    counted=[CountedRows("proposals", Proposal.objects.all, "owner")],
    refusal="the team has {most} kept proposals, as many as it may",
    code=TOO_MANY_PROPOSALS,
    counts="of its team, decided ones too",
    one_more="1005 `too_many_proposals`",
)
PROTOCOL_TASKS = AccountLimit(
    name="tasks of the Agent Protocol",
    fixed=1_000,
    counted=[CountedRows("tasks of the Agent Protocol", ProtocolTask.objects.all, "owner")],
    counts="[their](gateway.md#agent-protocol) inputs, outputs and artifacts count as storage, with the files",
)
STEPS = AccountLimit(
    name="steps of a task of the Agent Protocol",
    fixed=1_000,
    refusal="you have {held} steps of this task, and {most} are the most: remove some first",
)
ARTIFACTS = AccountLimit(
    name="artifacts of a task of the Agent Protocol",
    fixed=100,
    refusal="you have {held} artifacts of this task, and {most} are the most: remove some first",
    one_more="an upload: 429 `quota_exceeded`; an artifact of the agent is not kept",
)
FRAME_RECORDS = AccountLimit(
    name="records of frames",
    fixed=1_000_000,
    counts="of a team at the gateway, counted when old ones are deleted",
    one_more="the oldest are deleted",
)
