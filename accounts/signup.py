"""Reads the settings that say which users may join: the rules of `SIGNUP`, and the OpenID Connect providers.

Logins and `org:NAME`s let in people of GitHub, where a login has one holder. Addresses (`ann@example.org`) and
domains (`@example.org`) let in people of OpenID Connect, by the mail address that their provider has verified.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from kit.env import is_safe

LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?\Z")
ORG = "org:"
ADDRESS = re.compile(r"[^@\s]{0,64}@[a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?\Z")


@dataclass(frozen=True, slots=True)
class Signup:
    """The rules by which the hub admits new users. Names are in lower case."""

    is_open: bool = False
    logins: frozenset[str] = frozenset()
    orgs: tuple[str, ...] = ()
    addresses: frozenset[str] = frozenset()

    def takes_address(self, email: str) -> bool:
        """True if the rules name a verified mail address (in lower case) or its domain."""
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


MOST = 9
MAX_ISSUER_CHARS = 255
NO_CLAIM = "-"
CLAIM = re.compile(r"[\x21-\x7e]{1,200}\Z")
NAME = re.compile(r"[^\x00-\x1f\x7f]{1,60}\Z")


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider. The `number`, from 1, is part of the callback address."""

    number: int
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    name: str
    groups_claim: str = ""


def read_providers(
    issuers: str, client_ids: str, client_secrets: str, names: str, groups_claims: str = ""
) -> tuple[Provider, ...]:
    """Providers from lists in the same order: separated by spaces, the names by commas.

    A provider without a name has that of its host. `groups_claims`: of the first providers, or of all;
    `-` for a provider without such a claim.

    Raises:
        ValueError: the lists are not of one length, or an issuer is no https address; the text is fit to show.
    """
    found = [one.rstrip("/") for one in issuers.split()]
    ids, secrets = client_ids.split(), client_secrets.split()
    if not len(found) == len(ids) == len(secrets):
        raise ValueError(
            "OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET go together: as many of each, in the same order"
        )
    called = [one.strip() for one in names.split(",")] if names.strip() else []
    if len(called) > len(found) or len(found) > MOST or len(set(found)) < len(found):
        raise ValueError(f"OIDC_ISSUER: want up to {MOST} different issuers, and no more OIDC_NAMEs than issuers")
    for issuer in found:
        if not is_safe(issuer) or urlsplit(issuer).query or len(issuer) > MAX_ISSUER_CHARS:
            raise ValueError(f"OIDC_ISSUER={issuer!r}: want an address like https://accounts.example.org")
    if not all(NAME.match(name) for name in called if name):
        raise ValueError("OIDC_NAME: want names of up to 60 characters, separated by commas")
    called += [""] * (len(found) - len(called))
    claims = ["" if one == NO_CLAIM else one for one in groups_claims.split()]
    if len(claims) > len(found) or not all(CLAIM.match(one) for one in claims if one):
        raise ValueError("OIDC_GROUPS_CLAIM: want the names of claims, or -, and no more than issuers")
    claims += [""] * (len(found) - len(claims))
    rows = zip(found, ids, secrets, called, claims, strict=True)
    return tuple(
        Provider(number, issuer, client_id, secret, name or str(urlsplit(issuer).hostname), claim)
        for number, (issuer, client_id, secret, name, claim) in enumerate(rows, start=1)
    )
