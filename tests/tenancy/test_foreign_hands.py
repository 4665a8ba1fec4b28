"""What rules `BY_HAND` are about, by strangers, a friend and limited tokens: there and absent look the same.

So do bookings, stored messages and proposals, for which `test_matrix.py` and `test_pages.py` ask by the callers of
the matrix. The matrix has the other rules, `test_agents.py` tasks and agents of the bridge.
"""

import itertools
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest

from lab.callers import bearer
from tests.agnt.wire import PATH, Key, envelope
from tests.attempts import Attempts
from tests.tenancy.rights import May
from tests.tenancy.rules import RULES
from tests.tenancy.test_matrix import CANARY, NOT_AN_OBJECT, TIMES, VOLATILE
from tests.tenancy.test_pages import FORM, bare, visit
from tests.tenancy.web import Answer
from tests.tenancy.world import Names, World, fill

NAMED = re.compile(r"\{(\w+)\}")
FIPA = "/api/v1/gateway/fipa"
HTTP = ("GET ", "POST ", "PUT ", "PATCH ", "DELETE ", "PAGE ")
BRIDGE = "/api/a2a/v1/agents/"
# The placeholders that a rule spells like others, by the beginning of its address.
SPELLED = {
    "/api/v1/favourites/": {"slug": "private slug"},
    "/agents/": {"slug": "private slug"},
    "/api/v1/agents/{agent_id}/card-change": {"agent_id": "remote_id"},
    "/desk/agents/{agent_id}/remote": {"agent_id": "remote_id"},
    "/api/v1/groups/": {"invitation_id": "group_invitation_id"},
    "/groups/": {"slug": "group_slug"},
}
# Of secret links, accounts that the staff alone names, models with a task, and keys of AGNT: tests of their own.
ELSEWHERE = {"token", "account", "response_id", "model", "grant_id", "invitation_id"}
STORED = {"booking_id", "letter_id", "proposal_id"}  # of these rows, rules `MINE` and `OWN_PAGE` are asked, too
NOT_OF_USERS = ("PAGE /scim", *(f"{verb} /network/webhooks" for verb in ("GET", "POST", "PATCH", "DELETE")))
PERSONS = ("stan", "zoe", "vera", "root")  # two strangers, a friend who may look at a session, one of the staff
LIMITED = (
    "stan reads",
    "stan asks",
    "stan publishes",
    "stan one agent",
    "stan seat",
    "vera reads",
    "stan channel",
)
OTHERS = ("revoked", "expired", "sue", "stan key", "")
SOME = ("stan", "stan reads", "stan channel", "")
POSTED = FORM | {"act": "delete", "action": "leave", "title": "theirs"}
NOT_THE_OWNERS = {  # of these rows the owner, too, gets the answer of an absent row
    ("POST /api/v1/questions/{ask_id}/problem", False),
    ("PAGE /questions/{ask_id}", True),
    ("PAGE /files/{file_id}/delete", True),
}
LEAD_BACK = ("PAGE /account/", "PAGE /shares/")  # a form there leads to the list, whatever there was
Told = tuple[int, str, list[tuple[str, str]]]


def spelled(name: str) -> dict[str, str]:
    """The names of rows for those placeholders of a rule that have another one."""
    path = name.partition(" ")[2]
    found = (names for begins, names in SPELLED.items() if path.startswith(begins))
    return next(found, {})


def rows_of(name: str) -> list[str]:
    """The names of the rows that the address of a rule names."""
    return [spelled(name).get(one, one) for one in NAMED.findall(name) if one not in NOT_AN_OBJECT]


def is_asked(name: str) -> bool:
    """True if a rule is asked here, once more for those that the matrix has."""
    match RULES[name].may:
        case May.BY_HAND:
            return name.startswith(HTTP) and BRIDGE not in name and bool(rows_of(name))
        case May.MINE | May.OWN_PAGE:
            return not STORED.isdisjoint(rows_of(name))
    return False


NAMING = [name for name in RULES if is_asked(name)]
FOREIGN = [name for name in NAMING if not ELSEWHERE & set(rows_of(name)) and not name.startswith(NOT_OF_USERS)]
# A page takes a form too.
REQUESTS = [
    (name, posts) for name in FOREIGN for posts in ((False, True) if name.startswith("PAGE ") else (False,))
]


def path_of(name: str, names: Names) -> str:
    """The path of a rule's request about these rows."""
    names = names | {one: names[row] for one, row in spelled(name).items()}
    return str(fill(name.partition(" ")[2], {**names, "owner": "olga", "login": "zoe"}))


def ask(tenants: World, name: str, token: str, path: str, *, posts: bool = False) -> Answer:
    """The request of a rule: a page by its cookie, else by a Bearer token."""
    text = tenants.tokens.get(token, "")
    if name.startswith("PAGE "):
        return visit(tenants, path, token, posts=posts, data=POSTED)
    headers = bearer(text) if text else {}
    if RULES[name].form:
        return tenants.web.post(path, headers=headers, files={"file": ("a.txt", b"bytes", "text/plain")})
    body = RULES[name].body
    method = name.partition(" ")[0]
    return tenants.web.request(method, path, headers=headers, **({} if body is None else {"json": body}))


def told(answer: Answer, path: str) -> Told:
    """An answer, byte for byte, without the path that was asked for, the time and the mask of a form."""
    text = bare(answer, path)[1]
    headers = {
        key: "<time>" if key in TIMES else one for key, one in answer.headers.items() if key not in VOLATILE
    }
    headers = {key: one.replace(quote(path, safe=""), "<path>") for key, one in headers.items()}
    return answer.status_code, text, sorted(headers.items())


def id_of(request: tuple[str, bool]) -> str:
    return f"{request[0]}{' posted' if request[1] else ''}"


def test_every_rule_that_names_a_row_is_asked() -> None:
    assert len(REQUESTS) > 60
    left = {one for name in set(NAMING) - set(FOREIGN) for one in rows_of(name)}
    assert not ELSEWHERE - left
    assert {one for name in FOREIGN for one in rows_of(name)} >= STORED


@pytest.mark.parametrize("request_", REQUESTS, ids=map(id_of, REQUESTS))
def test_what_is_anothers_is_as_absent_as_what_is_not_there(
    tenants: World, attempts: Attempts, request_: tuple[str, bool]
) -> None:
    (name, posts), before = request_, tenants.changes.mark()
    callers = [*PERSONS, *LIMITED, *OTHERS] if attempts.is_long else SOME

    def about(caller: str, names: Names, *, is_own: bool = False) -> Told:
        path = path_of(name, names)
        answer = ask(tenants, name, caller, path, posts=posts)
        assert is_own or not CANARY.search(answer.text), caller
        return told(answer, path)

    for caller in callers:
        absent = about(caller, tenants.absent)
        assert absent[0] in statuses(name, caller, posts=posts), (caller, absent)
        for names in (tenants.main, tenants.gone):
            if set(rows_of(name)) <= names.keys():
                assert about(caller, names) == absent, caller
    if len(rows_of(name)) > 1:  # through a row of one's own
        inner = rows_of(name)[-1]
        nothing, theirs = (tenants.other | {inner: names[inner]} for names in (tenants.absent, tenants.main))
        assert about("stan", theirs) == about("stan", nothing)
    tenants.changes.check_none(before)
    if absent[0] != 405 and request_ not in NOT_THE_OWNERS:
        reads = name.startswith(("GET ", "PAGE ")) and not posts
        own = tenants.main if reads else tenants.main | tenants.spare(name)
        is_other = about("olga", own, is_own=True) != about("stan", tenants.absent)
        assert is_other or tenants.changes.since(before), "its owner reaches the row"


def test_an_acl_message_reaches_no_agent_of_another_team(tenants: World) -> None:
    for caller, performative in itertools.product(
        tenants.calling("stan", "vera"), ("query-ref", "propose", "inform")
    ):
        before, said = tenants.changes.mark(), []
        until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()  # a proposal that ended would be a change
        for name in (tenants.absent["agent_name"], tenants.main["agent_name"]):
            acl = {"performative": performative, "receiver": name, "content": "hi", "reply-with": "r"}
            acl["reply-by"] = until
            answer = tenants.web.post(FIPA, headers=bearer(tenants.tokens[caller]), json=acl)
            said.append((answer.status_code, answer.text.replace(name, "<name>")))
        assert said[0] == said[1], (caller, performative)
        tenants.changes.check_none(before, but_of=tenants.user_ids[caller])


@pytest.mark.parametrize("intent", ["booking.status", "booking.cancel"])
def test_a_booking_of_another_network_is_absent_for_a_key_of_an_equal_customer(
    tenants: World, intent: str
) -> None:
    stranger = Key(tenants.tokens["stan key"], tenants.tokens["stan key secret"], "")
    before, spare = tenants.changes.mark(), tenants.spare("POST /a2a/v1")

    def ask_for(names: Names, key: Key) -> Answer:
        sent = envelope(intent, key.sign({"booking_id": names["order_id"]}))
        return tenants.web.post(PATH, headers=bearer(key.token), json=sent)

    def said(names: Names) -> tuple[int, Any]:
        answer = ask_for(names, stranger)
        return answer.status_code, answer.json() | {"timestamp": "", "ttl_ms": 0}

    absent = said(tenants.absent)
    assert (absent[0], absent[1]["payload"]["error"]["code"]) == (404, "booking_not_found")
    for names in (tenants.main, tenants.gone):
        assert said(names) == absent
    changed = tenants.changes.since(before, but_of=tenants.user_ids["stan"])
    assert changed.keys() <= {"agnt_keyusage"}, "a call of a key counts, and no more"
    own = ask_for(spare, Key(spare["order key"], spare["order secret"], ""))
    assert own.status_code == 200, own.text


def statuses(name: str, caller: str, *, posts: bool) -> tuple[int, ...]:
    """The statuses that a refusal may have."""
    if name.startswith("PAGE "):
        leads_back = posts and name.startswith(LEAD_BACK)
        return (404, 405, 302) if leads_back or caller not in PERSONS else (404, 405)
    if caller in PERSONS:
        return (404, 405)
    return (401, 403, 404) if caller in LIMITED else (401,)
