"""The rules of who may join: `SIGNUP` is open, closed, or a list.

Logins and `org:NAME`s let in people of GitHub, where a login has one holder. Addresses (`ann@example.org`) and
domains (`@example.org`) let in people of OpenID Connect, by the mail address that their provider has verified.
"""

import re
from dataclasses import dataclass

LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?\Z")
ORG = "org:"
ADDRESS = re.compile(r"[^@\s]{0,64}@[a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?\Z")


@dataclass(frozen=True, slots=True)
class Signup:
    """Whom the hub lets in for the first time. Names are in lower case."""

    is_open: bool = False
    logins: frozenset[str] = frozenset()
    orgs: tuple[str, ...] = ()
    addresses: frozenset[str] = frozenset()

    def takes_address(self, email: str) -> bool:
        """Whether a verified mail address, in lower case, is named, or its domain."""
        return bool(email) and (email in self.addresses or f"@{email.rpartition('@')[2]}" in self.addresses)


def read_signup(text: str) -> Signup:
    """A `SIGNUP` as an operator writes it.

    Raises:
        ValueError: a word of the list is no login, no `org:` and a name, and no mail address or domain.
    """
    words = text.replace(",", " ").lower().split()
    if words in (["open"], ["closed"]):
        return Signup(is_open=words == ["open"])
    addresses = frozenset(word for word in words if ADDRESS.match(word))
    words = [word for word in words if word not in addresses]
    if not (words or addresses) or not all(LOGIN.match(word.removeprefix(ORG)) for word in words):
        raise ValueError(text)
    orgs = tuple(dict.fromkeys(word.removeprefix(ORG) for word in words if word.startswith(ORG)))
    logins = frozenset(word for word in words if not word.startswith(ORG))
    return Signup(logins=logins, orgs=orgs, addresses=addresses)
