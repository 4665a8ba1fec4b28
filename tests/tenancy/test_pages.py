"""The pages of one user: the account page and the owner's desk, requested with other users' cookies."""

import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote

import pytest
from django.urls import get_resolver

from accounts.admin_site import site
from tests.tenancy.rights import May
from tests.tenancy.rules import RULES
from tests.tenancy.test_matrix import CANARY
from tests.tenancy.web import Answer
from tests.tenancy.world import Names, World

OWN_PAGES = {name for name, rule in RULES.items() if rule.may is May.OWN_PAGE}
MASK = re.compile(r'name="csrfmiddlewaretoken" value="[^"]*"')
ASKED_OF_A_ROW = [("change", False), ("delete", False), ("history", False), ("change", True), ("delete", True)]
FORM = {"csrfmiddlewaretoken": "x" * 32}


def visit(
    tenants: World, path: str, caller: str, *, posts: bool = False, data: Mapping[str, str] = FORM
) -> Answer:
    """One page, with the cookie a browser would have."""
    cookies = f"csrftoken={FORM['csrfmiddlewaretoken']}"
    if token := tenants.tokens.get(caller):
        cookies += f"; cw_session={token}"
    headers = {"Cookie": cookies, "Origin": tenants.hub.url}
    if posts:
        return tenants.web.post(path, headers=headers, data=data)
    return tenants.web.get(path, headers=headers)


@pytest.mark.parametrize(
    ("address", "named", "table"),
    [
        ("/account/revoke/{}", "credential_id", "accounts_credential"),
        ("/account/clients/{}/revoke", "client_grant_id", "accounts_clientgrant"),
    ],
    ids=["token", "client"],
)
def test_the_account_page_revokes_ones_own_tokens_and_clients_only(
    tenants: World, address: str, named: str, table: str
) -> None:
    before = tenants.changes.mark()
    for caller in ("stan", "anna", "root", "revoked", "expired", "sue", "stan channel", "olga app", ""):
        answer = visit(tenants, address.format(tenants.main[named]), caller, posts=True)
        assert answer.status_code == 302, (caller, answer.text)
    tenants.changes.check_none(before)
    own = address.format(tenants.spare("account")[named])
    assert visit(tenants, own, "olga", posts=True).status_code == 302
    with pytest.raises(AssertionError, match=table):
        tenants.changes.check_none(before)


def collections() -> list[str]:
    """The addresses of the desk's tables."""
    assert get_resolver().url_patterns, "the module of the URLs registers the tables"
    return sorted(f"/admin/{model._meta.app_label}/{model._meta.model_name}/" for model in site._registry)


@pytest.fixture(scope="module")
def desk_rows(tenants: World) -> dict[str, str | None]:
    """A row of each table of the desk, if it has one: the owner's, or one of the staff's tables."""
    rows: dict[str, str | None] = {}
    for path in collections():
        listed = visit(tenants, f"{path}?all=", "olga")
        if listed.status_code == 403:  # rows of the staff alone
            listed = visit(tenants, f"{path}?all=", "root")
        rows[path] = min(row_links(listed.text, path), default=None)
    assert len([path for path in rows if rows[path]]) > 20
    return rows


def test_the_desk_shows_ones_own_rows_only(tenants: World, desk_rows: dict[str, str | None]) -> None:
    before, callers = tenants.changes.mark(), tenants.calling("stan", "anna", "gwen")
    for path, row in desk_rows.items():
        for caller in callers:
            listed = visit(tenants, path, caller)
            assert listed.status_code in (200, 403), (path, caller)
            assert not CANARY.search(listed.text), (path, caller)
        for page, posts in ASKED_OF_A_ROW if row else ():
            there, nowhere = f"{path}{row}/{page}/", f"{path}999999999/{page}/"
            absent = visit(tenants, nowhere, "stan", posts=posts)
            assert absent.status_code in (302, 403, 404, 405), (there, posts)
            for caller in callers:
                answer = visit(tenants, there, caller, posts=posts)
                assert unsigned(answer, there, caller) == unsigned(absent, nowhere, "stan"), (there, posts, caller)
                assert answer.headers.get("location") == absent.headers.get("location"), (there, posts, caller)
    tenants.changes.check_none(before)


def unsigned(answer: Answer, path: str, caller: str) -> tuple[int, str]:
    """An answer without the path and the name of its reader."""
    status, text = bare(answer, path)
    return status, text.replace(f"@{caller}", "<reader>")


def test_the_desk_sends_all_to_sign_in_who_are_not(tenants: World) -> None:
    for path in collections():
        for caller in tenants.calling("revoked", "expired", "sue", "stan channel", "olga app", ""):
            away = visit(tenants, path, caller)
            assert away.status_code == 302, (path, caller)
            assert "signin" in away.headers["location"] or "login" in away.headers["location"], (path, caller)


def row_links(page: str, path: str) -> Iterator[str]:
    """The keys of the rows a list of the desk leads to."""
    return (found.group(1) for found in re.finditer(rf'href="{re.escape(path)}([^/"]+)/change/', page))


def path_of(name: str, names: Names) -> str:
    return name.removeprefix("PAGE ").format_map({"name": "asks", **names})


def bare(answer: Answer, path: str) -> tuple[int, str]:
    """An answer without the path it was asked for and the mask of its forms."""
    text = MASK.sub("", answer.text)
    for written in (path, quote(path), quote(path, safe="")):
        text = text.replace(written, "<path>")
    return answer.status_code, text


@pytest.mark.parametrize("name", sorted(OWN_PAGES))
def test_the_pages_of_a_users_things_are_there_for_the_user_alone(tenants: World, name: str) -> None:
    mine, absent = path_of(name, tenants.main), path_of(name, tenants.absent)
    before = tenants.changes.mark()
    for posts in (False, True):
        to_sign_in = bare(visit(tenants, absent, "", posts=posts), absent)
        for caller in tenants.callers.values():
            is_signed_in = caller.is_live and caller.kind == "session"
            if caller.rank >= RULES[name].least_rank and is_signed_in:
                continue
            answer = visit(tenants, mine, caller.token, posts=posts)
            assert answer.status_code in (302, 401, 403, 404, 405), (caller.token, answer.status_code)
            if not is_signed_in:
                assert bare(answer, mine) == to_sign_in, caller.token
            elif caller.rank == 0:
                nothing = visit(tenants, absent, caller.token, posts=posts)
                assert bare(answer, mine) == bare(nothing, absent), caller.token
                assert not CANARY.search(answer.text), caller.token
            if answer.status_code == 302:
                assert answer.headers["location"].startswith("/signin"), (caller.token, answer.headers["location"])
    tenants.changes.check_none(before)
    own = visit(tenants, mine, "olga")
    assert own.status_code in (200, 405), own.text[:500]  # 405: it takes a post
    if own.status_code == 200:
        assert visit(tenants, absent, "olga").status_code == 404


def test_pages_of_ones_own_are_for_browsers_that_are_signed_in(tenants: World) -> None:
    path = "/desk/states"
    assert visit(tenants, path, "olga").status_code == 200
    for caller in ("revoked", "expired", "sue", "stan channel", "olga app", ""):
        assert visit(tenants, path, caller).status_code in (302, 401), caller
    assert not CANARY.search(visit(tenants, path, "stan").text)


def test_the_hubs_health_is_for_the_staff(tenants: World) -> None:
    for path in ("/health", "/limits"):
        assert visit(tenants, path, "root").status_code == 200
        for caller in ("olga", "stan", "revoked", "stan channel", ""):
            assert visit(tenants, path, caller).status_code == 404, caller
