"""The tables with rows of users: which rows an export shows, and which rows go with an account."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from graphlib import TopologicalSorter
from operator import or_
from typing import Any

from django.db.models import Model, Q, QuerySet

from a2a_bridge.models import (
    AnswerShare,
    Push,
    PushConfig,
    RecordedExchange,
    SendKey,
    StoredEvent,
    StoredTask,
    Thread,
    ThreadTask,
)
from accounts.models import (
    ClientGrant,
    Credential,
    DeviceGrant,
    Group,
    GroupInvitation,
    LoginCode,
    Membership,
    Passkey,
    ProviderIdentity,
    ScimGroup,
    ScimToken,
    ScimUser,
    User,
)
from agents.models import (
    Agent,
    AgentGrant,
    AgentRank,
    Alert,
    AlertAddress,
    AlertRule,
    Attachment,
    CallerBlock,
    CallerBudget,
    DailyUsage,
    Event,
    FailureCaller,
    FailureDay,
    FailureGroup,
    Favourite,
    File,
    FollowUp,
    Halt,
    Mail,
    OpMessage,
    PermissionRequest,
    ProblemNote,
    Rating,
    RemoteCard,
    RemoteName,
    RemoteServer,
    Session,
    Share,
    TokenUsage,
    Turn,
)
from agnt.models import (
    ApiKey,
    Booking,
    Breaker,
    Cancellation,
    Interaction,
    Invoice,
    KeyUsage,
    Network,
    SeenEnvelope,
    SeenSignature,
    UsageEvent,
    Venue,
)
from evaluations.models import EvaluationResult, EvaluationRun, QuestionSet, SavedQuestion
from gateway.models import (
    ChannelWatch,
    EnvelopeKey,
    FrameRecord,
    HeldEntry,
    Letter,
    Proposal,
    ProtocolArtifact,
    ProtocolStep,
    ProtocolTask,
    SessionEntry,
    SessionLog,
    TeamAgent,
    TeamPolicy,
    Vote,
)
from gateway.service.queue_rows import show_frame
from gateway.service.session_entries import show_content
from webhooks.models import Delivery, Subscription

FEW = 4  # rows that may be about 1 MiB each


@dataclass(frozen=True, slots=True)
class AccountTable:
    """A table with rows of users.

    `name`: in an export; empty: it is not exported. `by`: columns, or paths to columns: a row is of the user if
    one of these names the user; `choose` replaces `by` if columns do not suffice. `erased_by`: the same for rows
    that are deleted with the account, if these differ from `by`; empty: the rows are deleted with other rows, or
    kept (`erasure`).
    `at_once`: rows in memory. `unseal`: reads the columns that are sealed at rest and whose content is the user's.
    """

    name: str
    model: type[Model]
    by: Sequence[str]
    erased_by: Sequence[str] | None = None
    at_once: int = 200
    unseal: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)
    choose: Callable[[User], Q] | None = None

    def rows(self, user: User) -> QuerySet[Any]:
        """The rows that an export shows, oldest first."""
        theirs = self.choose(user) if self.choose else reduce(or_, [Q(**{path: user.pk}) for path in self.by])
        return self.model._default_manager.filter(theirs).order_by("pk")

    def erased(self, user: User) -> Iterator[QuerySet[Any]]:
        """The rows to delete, a query for each column, because each column has an index."""
        for path in self.by if self.erased_by is None else self.erased_by:
            yield self.model._default_manager.filter(**{path: user.pk})


def erased_rows(user: User) -> Iterator[QuerySet[Any]]:
    """All rows that are deleted with an account; rows that refer to other rows come before these."""
    tables = {one.model: one for one in TABLES if one.erased_by != ()}
    referring: dict[type[Model], set[type[Model]]] = {model: set() for model in tables}
    for model in tables:
        for column in model._meta.concrete_fields:
            if column.related_model in tables and column.related_model is not model:
                referring[column.related_model].add(model)
    for model in TopologicalSorter(referring).static_order():
        yield from tables[model].erased(user)


def _was_asked(user: User) -> Q:
    """The asks of others to the agents of a user."""
    return ~Q(caller=user) & Q(pk__in=Turn.objects.owned_by(user.pk).values("pk"))


def _of_groups(user: User) -> Q:
    """The group of an account, and the groups in which the user has a role."""
    return Q(account=user) | Q(pk__in=Membership.objects.filter(user=user).values("group"))


def _of_scim_groups(user: User) -> Q:
    """What an identity provider says of these groups."""
    return Q(group__in=Group.objects.filter(_of_groups(user)))


TABLES = (
    AccountTable("account", User, ("pk",), erased_by=()),
    AccountTable("token", Credential, ("user",)),
    AccountTable("client", ClientGrant, ("user",)),
    AccountTable("provider_identity", ProviderIdentity, ("user",), erased_by=()),
    AccountTable("passkey", Passkey, ("user",), erased_by=()),
    AccountTable("scim_user", ScimUser, ("user",), erased_by=()),
    AccountTable("scim_group", ScimGroup, (), erased_by=(), choose=_of_scim_groups),
    AccountTable("group", Group, (), erased_by=("account",), choose=_of_groups),
    AccountTable("membership", Membership, ("user", "group__account"), erased_by=("user",)),
    AccountTable("session", Session, ("owner",), erased_by=()),
    AccountTable("agent", Agent, ("owner",), erased_by=()),
    AccountTable("agent_grant", AgentGrant, ("agent__owner",), erased_by=("user",)),
    AccountTable("agent_rank", AgentRank, ("agent__owner",), erased_by=()),
    AccountTable("favourite", Favourite, ("user",)),
    AccountTable("caller_budget", CallerBudget, ("agent__owner", "caller"), erased_by=("caller",)),
    AccountTable("daily_usage", DailyUsage, ("agent__owner",), erased_by=()),
    AccountTable("remote_server", RemoteServer, ("session__owner",), erased_by=()),
    AccountTable("remote_card", RemoteCard, ("server__session__owner",), erased_by=(), at_once=FEW),
    AccountTable("halt", Halt, ("agent__owner", "user", "made_by"), erased_by=("user",)),
    AccountTable("block", CallerBlock, ("owner",), erased_by=("owner", "caller")),
    AccountTable("alert_rule", AlertRule, ("owner",)),
    AccountTable("alert_address", AlertAddress, ("owner",)),
    AccountTable("alert", Alert, ("agent__owner",), erased_by=()),
    AccountTable("failure_group", FailureGroup, ("agent__owner",), erased_by=()),
    AccountTable("failure_day", FailureDay, ("group__agent__owner",), erased_by=()),
    AccountTable("failure_caller", FailureCaller, ("group__agent__owner",), erased_by=("caller",)),
    AccountTable("share", Share, ("session__owner", "user"), erased_by=("user", "shared_by")),
    AccountTable("asked", Turn, ("caller",), erased_by=(), at_once=FEW),
    AccountTable("was_asked", Turn, (), erased_by=(), at_once=FEW, choose=_was_asked),
    AccountTable("follow_up", FollowUp, ("caller", "agent__owner"), erased_by=("caller",), at_once=FEW),
    AccountTable("problem_note", ProblemNote, ("caller", "agent__owner"), erased_by=("caller",)),
    AccountTable("rating", Rating, ("caller", "agent__owner"), erased_by=("caller",)),
    AccountTable("question_set", QuestionSet, ("agent__owner",), erased_by=()),
    AccountTable("saved_question", SavedQuestion, ("question_set__agent__owner",), erased_by=()),
    AccountTable("evaluation_run", EvaluationRun, ("question_set__agent__owner",), erased_by=()),
    AccountTable("evaluation_result", EvaluationResult, ("run__question_set__agent__owner",), erased_by=()),
    AccountTable("event", Event, ("session__owner",), erased_by=(), at_once=FEW),
    AccountTable("op_message", OpMessage, ("session__owner", "author"), erased_by=("author",), at_once=FEW),
    AccountTable("file", File, ("session__owner", "uploader"), erased_by=()),
    AccountTable("permission_request", PermissionRequest, ("session__owner",), erased_by=()),
    AccountTable("token_usage", TokenUsage, ("owner",)),
    AccountTable("team_session", SessionLog, ("owner",)),
    AccountTable(
        "team_session_entry", SessionEntry, ("log__owner",), at_once=FEW, unseal={"content": show_content}
    ),
    AccountTable("team_held_entry", HeldEntry, ("owner",), at_once=FEW, unseal={"content": show_content}),
    AccountTable("webhook", Subscription, ("owner",)),
    AccountTable("delivery", Delivery, ("subscription__owner",), at_once=FEW),
    AccountTable("team_agent", TeamAgent, ("owner",)),
    AccountTable(
        "letter",
        Letter,
        ("owner", "sender_owner"),
        at_once=FEW,
        unseal={"envelope": show_frame, "reply": show_frame},
    ),
    AccountTable("team_policy", TeamPolicy, ("owner",)),
    AccountTable("proposal", Proposal, ("owner",)),
    AccountTable("vote", Vote, ("proposal__owner",)),
    AccountTable("task", StoredTask, ("caller",), at_once=FEW),
    AccountTable("task_event", StoredEvent, ("task__caller",), at_once=FEW),
    AccountTable("thread", Thread, ("caller",)),
    AccountTable("thread_task", ThreadTask, ("thread__caller",), at_once=FEW),
    AccountTable("answer_share", AnswerShare, ("owner",), erased_by=("owner", "user"), at_once=FEW),
    AccountTable("exchange", RecordedExchange, ("caller",), erased_by=("caller", "agent__owner"), at_once=FEW),
    AccountTable("send_key", SendKey, ("caller",), at_once=FEW),
    AccountTable("push_config", PushConfig, ("caller",)),
    AccountTable("push", Push, ("config__caller",), at_once=FEW),
    AccountTable("protocol_task", ProtocolTask, ("owner",), at_once=FEW),
    AccountTable("protocol_step", ProtocolStep, ("task__owner",), at_once=FEW),
    AccountTable("protocol_artifact", ProtocolArtifact, ("task__owner",), at_once=FEW),
    AccountTable("frame", FrameRecord, ("owner",)),
    AccountTable("envelope_key", EnvelopeKey, ("owner",)),
    AccountTable("network", Network, ("owner",)),
    AccountTable("venue", Venue, ("network__owner",)),
    AccountTable("api_key", ApiKey, ("network__owner",)),
    AccountTable("key_usage", KeyUsage, ("key__network__owner",)),
    AccountTable("booking", Booking, ("network__owner",)),
    AccountTable("cancellation", Cancellation, ("network__owner",)),
    AccountTable("usage_event", UsageEvent, ("network__owner",)),
    AccountTable("invoice", Invoice, ("network__owner",)),
    AccountTable("interaction", Interaction, ("network__owner",)),
    AccountTable("remote_name", RemoteName, ("caller",)),
    AccountTable("", SeenEnvelope, ("network__owner",)),
    AccountTable("", SeenSignature, ("network__owner",)),
    AccountTable("", Breaker, ("network__owner",)),
    AccountTable("", Attachment, ("user",)),
    AccountTable("", ChannelWatch, ("owner",)),
    AccountTable("", Mail, ("owner",)),
    AccountTable("", LoginCode, ("user",)),
    AccountTable("", DeviceGrant, ("user",)),
    AccountTable("", GroupInvitation, ("made_by",)),
    AccountTable("", ScimToken, ("account",)),
)
EXPORTED = tuple(one for one in TABLES if one.name)
