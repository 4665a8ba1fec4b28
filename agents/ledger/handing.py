"""Files that questions and replies hand on, inside the batch that admits or settles (section 6.5 of the wire)."""

from dataclasses import replace

from django.db.models import F, Q

from agents.models import File
from agents.transcript.mentions import MAX_FILES, clone_into, mentions, readable, rewrite
from agents.types import Ask, Ending, OpenTurn, Outcome

MAX_LOOKED_UP = 500  # of the numbers a reply of a mebibyte can name


def may_hand_on(ask: Ask) -> bool:
    """Whether every file the question names is still there for its caller."""
    return not ask.files or readable(ask.files, ask.caller_id).keys() >= set(ask.files)


def handed_over(turn: OpenTurn) -> OpenTurn:
    """The question with the ids its files have in the session that is asked.

    Raises:
        FilesRefused: one went since `may_hand_on`; the batch is tried again.
    """
    ask = turn.ask
    if not ask.files:
        return turn
    return replace(turn, text=rewrite(turn.text, clone_into(ask.target.session_id, ask.files, ask.caller_id)))


def handed_back(ask: Ask, ending: Ending) -> Ending:
    """The reply with the ids its files have where it was asked from.

    Only files of the answering session go, its owner's and those its caller brought: whatever else the agent can
    name, what other callers brought too, is not its caller's to have. Of more than MAX_FILES the first: a reply
    never fails to end its turn.
    """
    if ending.outcome is not Outcome.COMPLETED or ask.source is None or "fileId=" not in ending.text:
        return ending
    named = mentions(ending.text)[:MAX_LOOKED_UP]
    open_to_caller = Q(uploader_id=F("session__owner_id")) | Q(uploader_id=ask.caller_id)
    own = File.objects.live().filter(open_to_caller, session_id=ask.target.session_id, pk__in=named)
    owners = dict(own.values_list("pk", "session__owner_id"))
    if not owners:
        return ending
    first = [number for number in named if number in owners][:MAX_FILES]
    ids = clone_into(ask.source.session_id, first, owners[first[0]])
    return replace(ending, text=rewrite(ending.text, ids))
