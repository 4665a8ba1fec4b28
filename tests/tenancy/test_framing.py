"""Clickjacking: no page of the hub can be framed by another site, for each kind of reader and each answer."""

import itertools

from tests.attempts import Attempts
from tests.tenancy.rules import RULES
from tests.tenancy.test_foreign_hands import path_of
from tests.tenancy.test_pages import collections, visit
from tests.tenancy.world import World

READERS = [("stan", False), ("root", False), ("", True), ("olga", False), ("", False)]  # and whether they post
NO_ROW = {"token": "unknown", "name": "errors", "tag": "sessions", "rest": "x", "number": "9", "grant_id": "1"}
OF_THE_ADMIN = "PAGE /admin/…"
PAGES = [name for name in RULES if name.startswith("PAGE ") and name != OF_THE_ADMIN]
ERRORS = ["/nothing-here", "/%00", "/admin/nothing/", "/desk/agents/x", "/static/nothing", "/join/", "/v1/nothing"]


def test_no_page_can_be_framed_by_another_site(tenants: World, attempts: Attempts) -> None:
    names = {**NO_ROW, "invitation_id": "1", "account": "zoe", "response_id": "x", "model": "x", **tenants.main}
    paths = [*(path_of(name, names) for name in PAGES), *collections(), *ERRORS]
    framed, pages = [], 0
    readers = READERS if attempts.is_long else READERS[-2:]
    for path, (reader, posts) in itertools.product(paths, readers):
        answer = visit(tenants, path, reader, posts=posts)
        if answer.headers.get("content-type", "").startswith("text/html"):
            pages += 1
            is_closed = "frame-ancestors 'none'" in answer.headers.get("content-security-policy", "")
            if not is_closed or answer.headers.get("x-frame-options") != "DENY":
                framed.append((path, reader, answer.status_code))
    attempts.count("pages framed by another site", pages, len(framed))
    assert framed == []
    assert pages > len(paths)
