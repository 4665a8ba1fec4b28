"""Forms of other sites: no page takes a form without its token, whatever it does."""

import re
import uuid

from a2a_bridge.wire.versions import EXTENSION_PATHS
from accounts.error_responses import API_PATHS
from tests.native.rows import Person, browser
from tests.routes import routes

PLACEHOLDERS = {"int": "1", "uuid": str(uuid.UUID(int=1))}
PLACEHOLDER = re.compile(r"<(?:(\w+):)?\w+>")
ADMIN = "/admin/"  # its views are Django's own
NO_PAGES = (
    *API_PATHS,
    "/.well-known/",
    "/scim/",
    *EXTENSION_PATHS,
)  # documents without a form, and what checks the origin


def test_every_page_refuses_a_form_without_its_token(alice: Person) -> None:
    client = browser(alice.session, enforce_csrf_checks=True)
    paths = (PLACEHOLDER.sub(lambda part: PLACEHOLDERS.get(part[1], "x"), path) for path, _ in routes())
    found = [path for path in paths if not path.startswith((ADMIN, *NO_PAGES))]
    assert len(found) > 50
    assert {path: status for path in found if (status := client.post(path).status_code) != 403} == {}
