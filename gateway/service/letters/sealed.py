"""Encrypts the frames of letters for storage, as the entries of sessions are encrypted (docs/adr/0155)."""

import msgspec

from accounts import sealing
from accounts.sealing import Unreadable
from gateway.models import Letter
from gateway.wire.frames import Json

PURPOSE = b"a2a-v1 letters"
_PLAIN = "{"  # the beginning of a frame that was stored before frames were sealed


def seal_frame(frame: Json) -> str:
    """Encrypt a frame for storage."""
    return sealing.seal_json(frame, PURPOSE)


def open_frame(stored: str) -> Json:
    """Decrypt a frame from its row.

    Raises:
        Unreadable: the frame is damaged, or no key opens it.
    """
    if stored.startswith(_PLAIN):
        plain: Json = msgspec.json.decode(stored)
        return plain
    opened: Json = sealing.open_json(stored, PURPOSE)
    return opened


def show_frame(stored: str) -> Json:
    """A frame for a list or an export of all rows; an unreadable frame has empty content."""
    try:
        return open_frame(stored) if stored else {}
    except Unreadable:
        return {"content": {}, "metadata": {}}


def reseal_letters() -> tuple[int, int]:
    """Seal the frames of all letters anew with the newest key; the numbers of sealed and of unreadable ones."""
    for column in ("envelope", "reply"):
        for letter in Letter.objects.filter(**{f"{column}__startswith": _PLAIN}).only(column).iterator():
            stored = getattr(letter, column)
            as_read = Letter.objects.filter(pk=letter.pk, **{column: stored})
            as_read.update(**{column: seal_frame(msgspec.json.decode(stored))})
    return sealing.reseal_all(Letter.objects.all(), PURPOSE, "envelope", "reply")
