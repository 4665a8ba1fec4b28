"""The limits of an account that count rows of `agents`."""

from typing import Any

from django.db.models import BigIntegerField, Count, Func, Sum

from accounts.quotas import MIB, AccountLimit, CountedRows
from agents import settings
from agents.models import Agent, Connection, Event, File, OpMessage, RemoteServer, Session, TokenUsage

USAGE_ROW_BYTES = 512  # a row of token usage: two texts of up to 128 characters, and its share of indexes


class Bytes(Func):
    """The size of a text, in bytes as it is stored."""

    output_field = BigIntegerField()
    template = "OCTET_LENGTH(%(expressions)s)"

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """SQLite before 3.43 knows it by another name."""
        return self.as_sql(compiler, connection, template="LENGTH(CAST(%(expressions)s AS BLOB))", **context)


AGENTS = AccountLimit(
    name="agents",
    settings=settings,
    setting="AGENTS_PER_OWNER",
    counted=[CountedRows("agents", Agent.objects.kept, "owner")],
    also_shown=[CountedRows("remote agents", RemoteServer.objects.all, "session__owner")],
    counts="drafts and remote A2A servers too",
)
SESSIONS = AccountLimit(
    name="sessions",
    settings=settings,
    setting="SESSIONS_PER_OWNER",
    counted=[CountedRows("sessions", Session.objects.all, "owner")],
    counts="archived ones too",
    one_more="429 `quota_exceeded`; a channel is refused with the same code",
)
CONNECTED_AGENTS = AccountLimit(
    name="connected agents",
    settings=settings,
    setting="SOCKETS_PER_OWNER",
    counted=[CountedRows("connected agents", Connection.objects.all, "session__owner")],
    refusal="you have {held} agents connected, and {most} are the most: remove some first",
    counts="over all processes; idle sockets too",
    one_more="the channel is refused with `quota_exceeded`",
)
FILES = CountedRows("files", File.objects.live, "uploader", number=Sum("size"))  # the same bytes twice count twice
OP_MESSAGES = CountedRows("op-messages", OpMessage.objects.all, "author", number=Sum(Bytes("text")))
USAGE = CountedRows("token usage", TokenUsage.objects.all, "owner", number=Count("pk") * USAGE_ROW_BYTES)
EVENTS = CountedRows(
    "transcripts", Event.objects.all, "session__owner", number=Sum(Bytes("payload")), is_sorted=False
)
STORAGE = AccountLimit(
    name="files and transcripts",
    settings=settings,
    setting="STORAGE_PER_OWNER_MB",
    unit=MIB,
    counted=[FILES, OP_MESSAGES, USAGE, EVENTS],
    refusal="with this you would have over {most} MiB here: delete some first",
    counts="files the account uploaded, events of its sessions, its messages to other operators, token usage of "
    f"its sessions at {USAGE_ROW_BYTES} bytes a row",
    one_more="a file or a report of token usage: 429 `quota_exceeded`; an event or op-message is not kept",
)
