"""The account limits that count rows of `agents`."""

from typing import Any

from django.db.models import BigIntegerField, Count, Func, Sum

from accounts.quotas import MIB, AccountLimit, CountedRows
from agents import settings
from agents.models import (
    Agent,
    Connection,
    Event,
    Favourite,
    File,
    OpMessage,
    ProblemNote,
    RemoteServer,
    Session,
    TokenUsage,
)

USAGE_ROW_BYTES = 512  # a row of token usage: two texts of up to 128 characters, and its share of indexes


class Bytes(Func):
    """The size of a text, in bytes as it is stored."""

    output_field = BigIntegerField()
    template = "OCTET_LENGTH(%(expressions)s)"

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """The SQL for SQLite, which has OCTET_LENGTH only since 3.43."""
        return self.as_sql(compiler, connection, template="LENGTH(CAST(%(expressions)s AS BLOB))", **context)


AGENTS = AccountLimit(
    "agents",
    (settings, "AGENTS_PER_OWNER"),
    counted=[CountedRows(Agent.objects.kept)],
    also_shown=[CountedRows(RemoteServer.objects.all, "session__owner", "remote agents")],
)
SESSIONS = AccountLimit(
    "sessions",
    (settings, "SESSIONS_PER_OWNER"),
    counted=[CountedRows(Session.objects.all)],
    one_more="429 `quota_exceeded`; a channel is refused with the same code",
)
CONNECTED_AGENTS = AccountLimit(
    "connected agents",
    (settings, "SOCKETS_PER_OWNER"),
    counted=[CountedRows(Connection.objects.all, "session__owner")],
    refusal="you have {held} agents connected, and {most} are the most: remove some first",
    one_more="the channel is refused with `quota_exceeded`",
)
FAVOURITES = AccountLimit(
    "favourites", 500, counted=[CountedRows(Favourite.objects.all, "user")], counts="agents that the user marked"
)
FILES = CountedRows(File.objects.live, "uploader", "files", number=Sum("size"))  # equal files count each
OP_MESSAGES = CountedRows(OpMessage.objects.all, "author", "op-messages", number=Sum(Bytes("text")))
USAGE = CountedRows(TokenUsage.objects.all, "owner", "token usage", number=Count("pk") * USAGE_ROW_BYTES)
EVENTS = CountedRows(
    Event.objects.all, "session__owner", "transcripts", number=Sum(Bytes("payload")), is_sorted=False
)
NUMBER_OF_FILES = AccountLimit(
    "files",
    (settings, "FILES_PER_OWNER"),
    counted=[CountedRows(File.objects.live, "uploader")],
    refusal="you have {held} files, and {most} are the most: delete some first",
)
STORAGE = AccountLimit(
    "files and transcripts",
    (settings, "STORAGE_PER_OWNER_MB"),
    counted=[FILES, OP_MESSAGES, USAGE, EVENTS],
    unit=MIB,
    refusal="with this you would have over {most} MiB here: delete some first",
    one_more="a file or a report of token usage: 429 `quota_exceeded`; an event or op-message is not kept",
)
PROBLEM_NOTES = AccountLimit(
    "problem notes",
    1_000,
    counted=[CountedRows(ProblemNote.objects.all, "caller")],
    refusal="you have reported {held} problems, and {most} are the most: notes go with their questions",
)
