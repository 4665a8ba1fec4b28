"""Forms of other sites: no page takes a form without its token, whatever it does."""

import re
import uuid
from collections.abc import Iterable, Iterator

from django.urls import URLPattern, URLResolver, get_resolver

from a2a_bridge.wire.versions import EXTENSION_PATH
from accounts.error_pages import API_PATHS
from tests.native.rows import Person, browser

PLACEHOLDERS = {"int": "1", "uuid": str(uuid.UUID(int=1))}
PLACEHOLDER = re.compile(r"<(?:(\w+):)?\w+>")
ADMIN = "/admin/"  # its views are Django's own
NO_PAGES = (API_PATHS, "/.well-known/", EXTENSION_PATH)  # documents without a form, and what checks the origin


def addresses(patterns: Iterable[URLPattern | URLResolver], prefix: str = "/") -> Iterator[str]:
    """Every address that Django serves, with some value for each variable part."""
    for one in patterns:
        path = prefix + PLACEHOLDER.sub(lambda found: PLACEHOLDERS.get(found[1], "x"), str(one.pattern))
        if isinstance(one, URLPattern):
            yield path
        elif path != ADMIN:
            yield from addresses(one.url_patterns, path)


def test_every_page_refuses_a_form_without_its_token(alice: Person) -> None:
    client = browser(alice.session, enforce_csrf_checks=True)
    found = [path for path in addresses(get_resolver().url_patterns) if not path.startswith(NO_PAGES)]
    assert len(found) > 50
    assert {path: status for path in found if (status := client.post(path).status_code) != 403} == {}
