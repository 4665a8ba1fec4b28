"""`fileId=N` in what is asked and answered (section 6.5 of the wire): a text that mentions a file gives its
reader access to it.
"""

import re
from collections.abc import Collection, Mapping

from django.db.models import Q

from agents.models import File
from agents.transcript import callers_files, files
from agents.transcript.access import sessions_visible_to
from agents.transcript.files import clone
from kit.clock import db_now

MENTION = re.compile(r"(?<!\w)fileId=([0-9]+)(?!\w)")
MAX_ID = 2**63 - 1
MAX_ID_DIGITS = 18
NO_FILE = 0
MAX_FILES = 50


class FilesRefused(Exception):
    """A prompt names files that cannot be passed to the agent; the text of the error is public."""


class FilesUnreadable(FilesRefused):
    """Some files are absent, deleted, or not readable for the sender; the error does not say which."""

    def __init__(self, file_ids: Collection[int]) -> None:
        super().__init__(f"no such file: {', '.join(map(str, sorted(file_ids)))}")
        self.file_ids = frozenset(file_ids)


class TooManyFiles(FilesRefused):
    """The prompt names more files than one prompt may."""

    def __init__(self) -> None:
        super().__init__(f"a prompt names at most {MAX_FILES} files")


def mentions(text: str) -> list[int]:
    """The ids of the files that a text names, each once, in order; a number that is too long for an id becomes 0,
    which is no file's id.
    """
    return list(dict.fromkeys(_number(digits) for digits in MENTION.findall(text)))


def rewrite(text: str, ids: Mapping[int, int]) -> str:
    """The text with each id in `ids` replaced by its value; other ids stay."""

    def replaced(mention: re.Match[str]) -> str:
        number = _number(mention[1])
        return f"fileId={ids[number]}" if number in ids else mention[0]

    return MENTION.sub(replaced, text)


def readable(file_ids: Collection[int], user_id: int) -> dict[int, File]:
    """The files of these ids that exist in a session that the user may see, or that the user uploaded to ask."""
    wanted = {number for number in file_ids if NO_FILE < number <= MAX_ID}
    if not wanted:
        return {}
    sessions = sessions_visible_to(user_id).values("pk")
    may_read = Q(session__in=sessions) | Q(uploader=user_id, session=None) | (Q(uploader=user_id) & ~Q(chat_id=""))
    found: dict[int, File] = File.objects.live().filter(may_read).in_bulk(wanted)
    return found


def clone_mentioned_files(
    session_id: int,
    file_ids: Collection[int],
    user_id: int,
    *,
    agent_id: int | None = None,
    chat_id: str = "",
    context_id: str = "",
) -> dict[int, int]:
    """Copy these files to a session, within the caller's transaction; returns the new id of each.

    The session's own files stay as they are. Files that the user has not sent yet are added themselves, as files
    of the question `chat_id`.

    Raises:
        FilesRefused: nothing was copied.
    """
    wanted = set(file_ids)
    if len(wanted) > MAX_FILES:
        raise TooManyFiles
    found = readable(wanted, user_id)
    unsent = {number: file for number, file in found.items() if file.session_id is None}
    foreign = {number: file for number, file in found.items() if file.session_id not in (session_id, None)}
    held = files.lock({file.sha256 for file in foreign.values()})
    lost = {number for number, file in foreign.items() if file.sha256 not in held}  # deleted just now
    if unsent:
        lost |= unsent.keys() - callers_files.send(
            unsent.values(), session_id, agent_id=agent_id, chat_id=chat_id, context_id=context_id
        )
    if missing := (wanted - found.keys()) | lost:
        raise FilesUnreadable(missing)
    now = db_now()
    copies = {number: clone(file, session_id, user_id, now).pk for number, file in sorted(foreign.items())}
    return {number: copies.get(number, number) for number in found}


def _number(digits: str) -> int:
    significant = digits.lstrip("0")
    return int(significant) if 0 < len(significant) <= MAX_ID_DIGITS else NO_FILE
