"""Where the rows of one user are, table by table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Model, Q, QuerySet

from a2a_bridge.models import Push, PushConfig, SendKey, StoredEvent, StoredTask
from accounts.models import Credential, Passkey, ProviderIdentity, User
from agents.models import (
    Agent,
    AgentGrant,
    CallerBlock,
    CallerBudget,
    DailyUsage,
    Event,
    File,
    Halt,
    OpMessage,
    PermissionRequest,
    RemoteCard,
    RemoteName,
    RemoteServer,
    Session,
    Share,
    TokenUsage,
    Turn,
)
from webhooks.models import Delivery, Subscription

SECRET = frozenset({"password", "digest", "sealed", "secret", "previous_secret", "credentials"})
FEW = 4  # rows that may be about 1 MiB each


@dataclass(frozen=True, slots=True)
class Part:
    """One table of an export. `of` narrows it to one user; `at_once`: rows in memory."""

    name: str
    model: type[Model]
    of: Callable[[User], Q]
    at_once: int = 200

    def rows(self, user: User) -> QuerySet[Any]:
        """Theirs, oldest first."""
        return self.model._default_manager.filter(self.of(user)).order_by("pk")


PARTS: Sequence[Part] = (
    Part("account", User, lambda user: Q(pk=user.pk)),
    Part("token", Credential, lambda user: Q(user=user)),
    Part("provider_identity", ProviderIdentity, lambda user: Q(user=user)),
    Part("passkey", Passkey, lambda user: Q(user=user)),
    Part("session", Session, lambda user: Q(owner=user)),
    Part("agent", Agent, lambda user: Q(owner=user)),
    Part("agent_grant", AgentGrant, lambda user: Q(agent__owner=user)),
    Part("caller_budget", CallerBudget, lambda user: Q(agent__owner=user) | Q(caller=user)),
    Part("daily_usage", DailyUsage, lambda user: Q(agent__owner=user)),
    Part("remote_server", RemoteServer, lambda user: Q(session__owner=user)),
    Part("remote_card", RemoteCard, lambda user: Q(server__session__owner=user), at_once=FEW),
    Part("halt", Halt, lambda user: Q(agent__owner=user) | Q(user=user) | Q(made_by=user)),
    Part("block", CallerBlock, lambda user: Q(owner=user)),
    Part("share", Share, lambda user: Q(session__owner=user) | Q(user=user)),
    Part("asked", Turn, lambda user: Q(caller=user), at_once=FEW),
    Part(
        "was_asked",
        Turn,
        lambda user: ~Q(caller=user) & Q(pk__in=Turn.objects.owned_by(user.pk).values("pk")),
        at_once=FEW,
    ),
    Part("event", Event, lambda user: Q(session__owner=user), at_once=FEW),
    Part("op_message", OpMessage, lambda user: Q(session__owner=user) | Q(author=user), at_once=FEW),
    Part("file", File, lambda user: Q(session__owner=user) | Q(uploader=user)),
    Part("permission_request", PermissionRequest, lambda user: Q(session__owner=user)),
    Part("token_usage", TokenUsage, lambda user: Q(owner=user)),
    Part("webhook", Subscription, lambda user: Q(owner=user)),
    Part("delivery", Delivery, lambda user: Q(subscription__owner=user), at_once=FEW),
    Part("task", StoredTask, lambda user: Q(caller=user), at_once=FEW),
    Part("task_event", StoredEvent, lambda user: Q(task__caller=user), at_once=FEW),
    Part("send_key", SendKey, lambda user: Q(caller=user), at_once=FEW),
    Part("push_config", PushConfig, lambda user: Q(caller=user)),
    Part("push", Push, lambda user: Q(config__caller=user), at_once=FEW),
    Part("remote_name", RemoteName, lambda user: Q(caller=user)),
)
