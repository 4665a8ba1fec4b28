"""Who may join: `SIGNUP` is open, closed, or a list of logins and `org:NAME`s."""

import re
from dataclasses import dataclass

LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?\Z")
ORG = "org:"


@dataclass(frozen=True, slots=True)
class Signup:
    """Whom the hub lets in for the first time. Names are in lower case."""

    is_open: bool = False
    logins: frozenset[str] = frozenset()
    orgs: tuple[str, ...] = ()


def read_signup(text: str) -> Signup:
    """A `SIGNUP` as an operator writes it.

    Raises:
        ValueError: a word of the list can be neither a login nor `org:` and a name.
    """
    words = text.replace(",", " ").lower().split()
    if words in (["open"], ["closed"]):
        return Signup(is_open=words == ["open"])
    if not words or not all(LOGIN.match(word.removeprefix(ORG)) for word in words):
        raise ValueError(text)
    orgs = tuple(dict.fromkeys(word.removeprefix(ORG) for word in words if word.startswith(ORG)))
    return Signup(logins=frozenset(word for word in words if not word.startswith(ORG)), orgs=orgs)
