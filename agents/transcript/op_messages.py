"""What operators of a session tell each other."""

import re
from collections.abc import Sequence

from django.db import transaction

from agents.models import OpMessage, Session
from agents.transcript.announcing import announce
from agents.transcript.live import OpMessageMessage
from kit.clock import db_now
from kit.iso import iso

MAX_MENTIONS = 50

_LOGIN = re.compile(r"(?<![\w@./-])@([A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?)(?![\w/])")


@transaction.atomic
def post(
    session: Session, *, author_id: int, author_login: str, text: str, mentions: Sequence[str] | None = None
) -> OpMessage:
    """Keep a message and show it to all who watch, its author among them. `mentions` None: those in the text."""
    named = [one.removeprefix("@") for one in mentions] if mentions is not None else logins_in(text)
    now = db_now()
    row = OpMessage.objects.create(session=session, author_id=author_id, text=text, mentions=named, ts=now)
    announce(session.pk, OpMessageMessage(str(session.public_id), author_login, text, named, iso(now)))
    return row


def logins_in(text: str) -> list[str]:
    """The `@login` words of a text, each once, in order."""
    return list(dict.fromkeys(_LOGIN.findall(text)))[:MAX_MENTIONS]
