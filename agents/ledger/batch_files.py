"""The files that questions and replies of a batch name: each session has ids of its own for them."""

from django.db.models import F, Q
from msgspec.structs import replace

from agents.ledger.database import Database
from agents.models import File
from agents.transcript.mentions import MAX_FILES, clone_into, mentions, readable, rewrite
from agents.types import Ask, Ending, OpenTurn, Outcome, Source

MAX_FILES_LOOKED_UP = 500  # of the numbers a reply of a mebibyte can name


def files_are_there(database: Database, ask: Ask) -> bool:
    """Whether every file the question names is still there for its caller."""
    with database.for_django():
        return readable(ask.files, ask.caller_id).keys() >= set(ask.files)


def hand_files_over(database: Database, turn: OpenTurn) -> OpenTurn:
    """The question with the ids its files have in the session that is asked.

    Raises:
        FilesRefused: one went since `files_are_there`; the batch is tried again.
    """
    ask = turn.ask
    with database.for_django():
        ids = clone_into(ask.target.session_id, ask.files, ask.caller_id)
    return replace(turn, text=rewrite(turn.text, ids))


def hand_files_back(database: Database, ask: Ask, source: Source, ending: Ending) -> Ending:
    """The reply with the ids its files have where it was asked from.

    Only files of the answering session go, its owner's and those its caller brought: whatever else the agent can
    name, what other callers brought too, is not its caller's to have. Of more than MAX_FILES the first: a reply
    never fails to end its turn.
    """
    if ending.outcome is not Outcome.COMPLETED or "fileId=" not in ending.text:
        return ending
    with database.for_django():
        return _with_files_of_source(ask, source.session_id, ending)


def _with_files_of_source(ask: Ask, source_id: int, ending: Ending) -> Ending:
    named = mentions(ending.text)[:MAX_FILES_LOOKED_UP]
    open_to_caller = Q(uploader_id=F("session__owner_id")) | Q(uploader_id=ask.caller_id)
    own = File.objects.live().filter(open_to_caller, session_id=ask.target.session_id, pk__in=named)
    owners = dict(own.values_list("pk", "session__owner_id"))
    if not owners:
        return ending
    first = [number for number in named if number in owners][:MAX_FILES]
    ids = clone_into(source_id, first, owners[first[0]])
    return replace(ending, text=rewrite(ending.text, ids))
