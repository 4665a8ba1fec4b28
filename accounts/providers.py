"""The OpenID Connect providers of a hub, as its operator names them."""

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from kit.env import is_safe

MOST = 9
MAX_ISSUER_CHARS = 255
NAME = re.compile(r"[^\x00-\x1f\x7f]{1,60}\Z")


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider. Its `number`, from 1, is part of its callback address."""

    number: int
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    name: str


def read_providers(issuers: str, client_ids: str, client_secrets: str, names: str) -> tuple[Provider, ...]:
    """Providers from lists in the same order: separated by spaces, the names by commas.

    A provider without a name has that of its host.

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
    rows = zip(found, ids, secrets, called, strict=True)
    return tuple(
        Provider(number, issuer, client_id, secret, name or str(urlsplit(issuer).hostname))
        for number, (issuer, client_id, secret, name) in enumerate(rows, start=1)
    )
