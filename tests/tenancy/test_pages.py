"""The pages that belong to somebody: the account page and the owner's desk, by others' cookies."""

import re
from collections.abc import Iterator

import httpx
import pytest

from accounts.admin_site import site
from tests.tenancy.tables import snapshot
from tests.tenancy.test_matrix import CANARY, changed
from tests.tenancy.world import World

COLLECTIONS = sorted(f"/admin/{model._meta.app_label}/{model._meta.model_name}/" for model in site._registry)
FORM = {"csrfmiddlewaretoken": "x" * 32}


def visit(tenants: World, path: str, caller: str, *, posts: bool = False) -> httpx.Response:
    """One page, with the cookie a browser would have."""
    cookies = f"csrftoken={FORM['csrfmiddlewaretoken']}"
    if token := tenants.tokens.get(caller):
        cookies += f"; cw_session={token}"
    headers = {"Cookie": cookies, "Origin": tenants.hub.url}
    if posts:
        return tenants.web.post(path, headers=headers, data=FORM)
    return tenants.web.get(path, headers=headers)


def test_the_account_page_revokes_ones_own_only(tenants: World) -> None:
    before = snapshot(tenants.hub)
    path = f"/account/revoke/{tenants.main['credential_id']}"
    for caller in ("stan", "anna", "root", "revoked", "expired", "sue", "stan channel", "olga app", ""):
        answer = visit(tenants, path, caller, posts=True)
        assert answer.status_code == 302, (caller, answer.text)
    changed(before, snapshot(tenants.hub))
    own = tenants.spare("account")["credential_id"]
    assert visit(tenants, f"/account/revoke/{own}", "olga", posts=True).status_code == 302
    with pytest.raises(AssertionError, match="accounts_credential"):
        changed(before, snapshot(tenants.hub))


@pytest.mark.parametrize("path", COLLECTIONS)
def test_the_desk_shows_ones_own_rows_only(tenants: World, path: str) -> None:
    before = snapshot(tenants.hub)
    rows = set(row_links(visit(tenants, f"{path}?all=", "olga").text, path))
    for caller in ("stan", "anna", "gwen"):
        listed = visit(tenants, path, caller)
        assert listed.status_code in (200, 403), caller
        assert not CANARY.search(listed.text), caller
        for row in sorted(rows)[:3]:
            for page in ("change", "delete", "history"):
                answer = visit(tenants, f"{path}{row}/{page}/", caller)
                absent = visit(tenants, f"{path}999999999/{page}/", caller)
                assert answer.status_code == absent.status_code != 200, (caller, row, page)
                posted = visit(tenants, f"{path}{row}/{page}/", caller, posts=True)
                assert posted.status_code in (302, 403, 404, 405), (caller, row, page, posted.status_code)
    for caller in ("revoked", "expired", "sue", "stan channel", "olga app", ""):
        away = visit(tenants, path, caller)
        assert away.status_code == 302, caller
        assert "signin" in away.headers["location"] or "login" in away.headers["location"], caller
    changed(before, snapshot(tenants.hub))


def row_links(page: str, path: str) -> Iterator[str]:
    """The keys of the rows a list of the desk leads to."""
    return (found.group(1) for found in re.finditer(rf'href="{re.escape(path)}([^/"]+)/change/', page))
