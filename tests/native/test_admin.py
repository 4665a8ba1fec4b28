"""The admin as an owner's desk."""

import asyncio
import csv
import io
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import AsyncClient, Client
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from accounts.admin_site import site
from accounts.authn import COOKIE
from accounts.models import Credential, Invitation, Passkey, ProviderIdentity, User
from agents.core.directory import load_caller_budgets
from agents.models import Agent, CallerBlock, Halt, RemoteServer, Session, Turn
from agnt.models import Breaker, Invoice
from gateway.models import (
    EnvelopeKey,
    FrameRecord,
    Letter,
    Proposal,
    SessionLog,
    TeamAgent,
    TeamPolicy,
    Vote,
)
from tests.agnt.network_rows import count_calls, make_booking, make_interaction, make_key, make_venue
from tests.native.rows import Person, browser, connect, make_agent, make_session, make_turn, spend
from tests.webhooks.subscriptions import happen, subscribed

AGENTS = "/admin/agents/agent/"
TURNS = "/admin/agents/turn/"
CREDENTIALS = "/admin/accounts/credential/"
STAFF_ONLY = [
    "/admin/accounts/user/",
    "/admin/agents/session/",
    "/admin/agents/process/",
    "/admin/agents/connection/",
    "/admin/agents/dailyusage/",
]
SETTINGS = {
    **{"name": "Helper", "tagline": "", "description": "", "status": "draft", "isolated": "on"},
    **{"access": "public", "allowed_logins": ""},
    **{"daily_budget": "1000", "concurrency_cap": "5", "suggested_prompts": "", "claude_md": ""},
    **{"caller_budget": "", "caller_budgets": "", "wait_s": "", "agent_style": "hybrid"},
    **{"queue_max": "0", "queue_wait_s": "60"},
    "personalization_prompt": "",
}


def text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)
    return answer.content.decode()


def act(client: Client, path: str, action: str, *rows: Any, **more: str) -> Any:
    chosen = {"action": action, "_selected_action": [row.pk for row in rows], **more}
    return client.post(path, chosen, follow=True)


def test_a_visitor_is_sent_to_the_sign_in_and_back(db: None) -> None:
    first = browser().get(AGENTS)
    assert first["Location"] == f"/admin/login/?next={AGENTS}"
    assert browser().get(first["Location"])["Location"] == "/signin?next=%2Fadmin%2Fagents%2Fagent%2F"


def test_the_admin_is_found_without_its_slash(db: None) -> None:
    assert browser().get("/admin")["Location"] == "/admin/"


def test_the_admin_opens_for_every_user_signed_in_and_not_suspended(alice: Person) -> None:
    client = browser(alice.session)
    assert "Administration" in text(client, "/admin/")
    assert client.get("/admin/login/")["Location"] == "/admin/"
    alice.user.is_active = False
    alice.user.save()
    assert client.get("/admin/").status_code == 302


def test_a_channel_token_opens_no_admin(alice: Person) -> None:
    assert browser(alice.session).get("/admin/").status_code == 200
    assert browser(alice.channel).get("/admin/").status_code == 302


def test_signing_out_of_the_admin_revokes_the_session(alice: Person) -> None:
    client = browser(alice.session)
    assert client.get("/admin/logout/").status_code == 405
    answer = client.post("/admin/logout/")
    assert (answer["Location"], answer.cookies[COOKIE].value) == ("/", "")
    assert browser(alice.session).get("/admin/").status_code == 302


def test_there_are_no_passwords_to_change(alice: Person) -> None:
    client = browser(alice.session)
    assert client.get("/admin/password_change/").status_code in (302, 404)
    assert "assword" not in text(client, "/admin/")


def test_no_page_looks_up_any_row_of_any_table(alice: Person) -> None:
    with pytest.raises(NoReverseMatch):
        reverse("admin:view_on_site", args=[1, 1])
    for content_type in (1, 999):
        assert browser(alice.session).get(f"/admin/r/{content_type}/{alice.user.pk}/").status_code == 404


def test_admin_forms_keep_their_csrf_token(alice: Person) -> None:
    agent = make_agent(alice.user)
    client = browser(alice.session, enforce_csrf_checks=True)
    assert client.post(f"{AGENTS}{agent.pk}/delete/", {"post": "yes"}).status_code == 403
    assert Agent.objects.kept().exists()


def test_owners_see_their_own_rows_and_staff_see_all(alice: Person, bob: Person, staff: Person) -> None:
    for person in (alice, bob):
        make_turn(
            make_agent(person.user, f"of-{person.user.login}"), person.user, question=f"ask {person.user.login}"
        )
    for path, hers, his in (
        (AGENTS, "alice/of-alice", "bob/of-bob"),
        (TURNS, "alice/of-alice", "bob/of-bob"),
        (CREDENTIALS, alice.session[:14], bob.session[:14]),
    ):
        assert hers in text(browser(alice.session), path)
        assert his not in text(browser(alice.session), path)
        assert his in text(browser(staff.session), path)
        assert hers in text(browser(staff.session), path)


def test_a_row_of_another_user_is_as_absent_as_one_that_is_not(alice: Person, bob: Person) -> None:
    agent = make_agent(bob.user)
    turn = make_turn(agent, alice.user)
    credential = Credential.objects.get(prefix=bob.session[:14])
    client = browser(alice.session)
    for path, row in ((AGENTS, agent), (TURNS, turn), (CREDENTIALS, credential)):
        assert browser(bob.session).get(f"{path}{row.pk}/change/").status_code == 200
        for page in ("change", "history", "delete"):
            theirs = client.get(f"{path}{row.pk}/{page}/")
            absent = client.get(f"{path}{row.pk + 1000}/{page}/")
            assert theirs.status_code == absent.status_code
            assert theirs.status_code in (302, 403)


def have_team(owner: User, seat: Session) -> None:
    """A row of each table of the gateway that the admin shows."""
    now = timezone.now()
    proposal = Proposal.objects.create(
        owner=owner, key="p-1", proposer="bob", text="?", members=[], created_at=now, deadline=now
    )
    Vote.objects.create(proposal=proposal, voter="alpha", vote="approve", voted_at=now)
    TeamAgent.objects.create(owner=owner, name="alpha")
    TeamPolicy.objects.create(owner=owner)
    SessionLog.objects.create(owner=owner, agent="alpha", session_id="s-1", created_at=now, last_entry_at=now)
    FrameRecord.objects.create(owner=owner, at=now, source="alpha", type="ping", outcome="served", bytes=1)
    EnvelopeKey.objects.create(owner=owner, key_id="key-1", name="one", secret="sealed")
    said = {"owner": owner, "sender_owner": owner, "sender": "alpha", "message_id": "m-1", "addressed_to": "beta"}
    Letter.objects.create(recipient=seat, envelope="{}", bytes=2, received_at=now, **said)


def have_network(owner: User) -> None:
    """A row of each table of AGNT that the admin shows."""
    venue, key = make_venue(owner), make_key(owner).key
    booking = make_booking(venue, key)
    count_calls(key, 1)
    Breaker.objects.create(network=venue.network, venue=venue)
    Invoice.objects.create(network=venue.network, customer="acme", day=timezone.now().date())
    make_interaction(venue.network, key=key, venue=venue, booking=booking)


def test_no_page_of_any_table_tells_a_row_of_another_user_from_none(
    alice: Person, bob: Person, staff: Person
) -> None:
    agent = make_agent(bob.user)
    connect(agent.session)
    spend(agent, 1)
    make_turn(agent, bob.user)
    Halt.objects.create(kind="agent", agent=agent, by_staff=False)
    CallerBlock.objects.create(owner=bob.user, caller=alice.user)
    RemoteServer.objects.create(session=make_session(bob.user, "far"), card_url="https://far.example/")
    ProviderIdentity.objects.create(user=bob.user, issuer="https://id.example", subject="bob")
    Passkey.objects.create(user=bob.user, credential_id="AAAA", public_key="AAAA")
    Invitation.objects.create(digest="0" * 64, login="new", expires_at=timezone.now())
    have_team(bob.user, agent.session)
    have_network(bob.user)
    subscribed(bob.user)
    happen(bob.user)
    act(browser(staff.session), AGENTS, "unpublish", agent)  # which the log of the admin has
    looker = browser(alice.session)
    for model in site._registry:
        theirs = (
            model._default_manager.exclude(pk=alice.user.pk) if model is User else model._default_manager.all()
        )
        if model is Credential:
            theirs = theirs.filter(user=bob.user)
        key = theirs.values_list("pk", flat=True)[0]
        absent = key + 1000 if isinstance(key, int) else f"{key}x"
        for page in ("change", "history", "delete"):
            path = f"/admin/{model._meta.app_label}/{model._meta.model_name}/{{}}/{page}/"
            there, nowhere = (looker.get(path.format(one)).status_code for one in (key, absent))
            assert there == nowhere, path
            assert there in (302, 403, 404), path


def test_an_owner_cannot_act_on_rows_of_another_user(alice: Person, bob: Person) -> None:
    agent = make_agent(bob.user)
    client = browser(alice.session)
    act(client, AGENTS, "unpublish", agent)
    act(client, AGENTS, "delete_selected", agent, post="yes")
    client.post(f"{AGENTS}{agent.pk}/delete/", {"post": "yes"})
    client.post(f"{AGENTS}{agent.pk}/change/", {**SETTINGS, "daily_budget": "1"})
    act(client, CREDENTIALS, "revoke", Credential.objects.get(prefix=bob.session[:14]))
    agent.refresh_from_db()
    assert (agent.status, agent.deleted_at, agent.daily_budget) == ("published", None, 1000)
    assert Credential.objects.get(prefix=bob.session[:14]).is_live


@pytest.mark.parametrize("path", STAFF_ONLY)
def test_the_hubs_own_rows_are_for_the_staff(alice: Person, staff: Person, path: str) -> None:
    connect(make_agent(alice.user).session)
    spend(Agent.objects.get(), 1)
    text(browser(staff.session), path)
    assert browser(alice.session).get(path).status_code == 403
    assert browser(staff.session).get(f"{path}add/").status_code == 403


def test_the_list_shows_what_is_spent_of_the_budget_and_who_is_online(alice: Person) -> None:
    agent = make_agent(alice.user, daily_budget=50)
    connect(agent.session)
    spend(agent, 7)
    page = text(browser(alice.session), AGENTS)
    assert "7 / 50" in page
    assert 'alt="True"' in page
    assert "7 / 50" in text(browser(alice.session), f"{AGENTS}{agent.pk}/change/")


def test_an_owner_publishes_and_unpublishes_in_the_list(alice: Person) -> None:
    agent, client = make_agent(alice.user, status="draft"), browser(alice.session)
    act(client, AGENTS, "publish", agent)
    agent.refresh_from_db()
    assert agent.status == "published"
    assert agent.published_at is not None
    act(client, AGENTS, "unpublish", agent)
    agent.refresh_from_db()
    assert agent.status == "draft"


def test_agents_are_halted_and_resumed_in_the_list(alice: Person, bob: Person, staff: Person) -> None:
    agent, owner, admin = make_agent(alice.user), browser(alice.session), browser(staff.session)
    act(owner, AGENTS, "halt", agent)
    act(browser(bob.session), AGENTS, "resume", agent)
    assert [halt.by_staff for halt in Halt.objects.active()] == [False]
    assert ">halted<" in text(owner, f"{AGENTS}?state=halted")
    act(admin, AGENTS, "halt", agent)
    refused = act(owner, AGENTS, "resume", agent).content.decode()
    assert "An administrator made the other halts" in refused
    assert [halt.by_staff for halt in Halt.objects.active()] == [True]
    act(admin, AGENTS, "resume", agent)
    assert not Halt.objects.active().exists()
    assert "0 agents" in text(owner, f"{AGENTS}?state=halted")


def test_an_owner_changes_settings_but_not_the_place(alice: Person, bob: Person) -> None:
    agent = make_agent(alice.user, status="draft")
    moved = {"handle": "bob/x", "owner": bob.user.pk}
    changed = {
        **SETTINGS,
        **moved,
        "status": "published",
        "daily_budget": "9",
        "suggested_prompts": "one\n\n two \n",
    }
    answer = browser(alice.session).post(f"{AGENTS}{agent.pk}/change/", changed)
    assert answer.status_code == 302
    before, session_id = agent.handle, agent.session_id
    agent.refresh_from_db()
    assert (agent.status, agent.daily_budget, agent.suggested_prompts) == ("published", 9, ["one", "two"])
    assert agent.published_at is not None
    assert (agent.handle, agent.owner, agent.session_id) == (before, alice.user, session_id)


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("daily_budget", "100000", "100001"),
        ("concurrency_cap", "20", "21"),
        ("name", "x", ""),
        ("suggested_prompts", "a\n" * 6, "a\n" * 7),
        ("suggested_prompts", "x" * 400, "x" * 401),
        ("skills", "id: a\nname: A", "id: a"),
        ("output_modes", "text/plain", "image/png"),
        ("max_body_bytes", "1024", "1023"),
    ],
)
def test_a_bad_setting_is_refused_in_the_form(alice: Person, field: str, good: str, bad: str) -> None:
    url = f"{AGENTS}{make_agent(alice.user).pk}/change/"
    assert browser(alice.session).post(url, {**SETTINGS, field: good}).status_code == 302
    answer = browser(alice.session).post(url, {**SETTINGS, field: bad})
    assert answer.status_code == 200
    assert "errorlist" in answer.content.decode()


def test_the_form_keeps_the_budgets_of_callers(alice: Person, bob: Person) -> None:
    agent, client = make_agent(alice.user), browser(alice.session)
    url = f"{AGENTS}{agent.pk}/change/"
    filled = {**SETTINGS, "caller_budget": "5", "caller_budgets": "BOB 7\n"}
    assert client.post(url, filled).status_code == 302
    assert load_caller_budgets([agent.pk])[agent.pk] == {"bob": 7}
    assert "bob 7" in text(client, url)
    refused = client.post(url, {**filled, "caller_budgets": "bob seven"})
    assert "Want a login, a space and a number" in refused.content.decode()
    assert load_caller_budgets([agent.pk])[agent.pk] == {"bob": 7}
    assert client.post(url, SETTINGS).status_code == 302
    assert load_caller_budgets([agent.pk])[agent.pk] == {}


def test_an_agent_moves_to_another_session_of_its_owner(alice: Person, bob: Person) -> None:
    agent, other = make_agent(alice.user), make_session(alice.user, "laptop", host="box")
    url, client = f"{AGENTS}{agent.pk}/change/", browser(alice.session)
    assert "@laptop (box), last seen" in text(client, url)
    refused = client.post(url, {**SETTINGS, "session": make_session(bob.user).pk})
    assert "not one of the available choices" in refused.content.decode()
    turn = make_turn(agent, bob.user, None)
    busy = client.post(url, {**SETTINGS, "session": other.pk}, follow=True).content.decode()
    assert "Not saved: a question to the agent is open" in busy
    turn.delete()
    assert client.post(url, {**SETTINGS, "session": other.pk}).status_code == 302
    agent.refresh_from_db()
    assert agent.session == other


def test_a_new_agent_is_published_from_a_session_of_ones_own(alice: Person, bob: Person) -> None:
    session, foreign = make_session(alice.user, "notes", host="box"), make_session(bob.user, "foreign")
    make_agent(alice.user, "used")
    client = browser(alice.session)
    page = text(client, f"{AGENTS}add/")
    assert "@notes (box), last seen" in page
    assert "@foreign" not in page
    assert "@used" not in page
    refused = client.post(f"{AGENTS}add/", {**SETTINGS, "session": foreign.pk, "slug": "x"})
    assert (refused.status_code, Agent.objects.filter(owner=alice.user).count()) == (200, 1)
    answer = client.post(f"{AGENTS}add/", {**SETTINGS, "session": session.pk, "slug": "", "status": "published"})
    assert answer.status_code == 302
    agent = Agent.objects.get(handle="alice/notes")
    assert (agent.owner, agent.session, agent.status) == (alice.user, session, "published")


@pytest.mark.parametrize(
    ("slug", "reason"), [("used", "@alice/used is yours already, on another session"), ("Bad Slug", "lower-case")]
)
def test_a_place_one_cannot_have_is_said_in_the_form(alice: Person, slug: str, reason: str) -> None:
    make_agent(alice.user, "used")
    body = {**SETTINGS, "session": make_session(alice.user, "notes").pk, "slug": slug, "name": "Kept"}
    answer = browser(alice.session).post(f"{AGENTS}add/", body)
    assert answer.status_code == 200
    assert reason in answer.content.decode()
    assert 'value="Kept"' in answer.content.decode()


def test_publishing_a_deleted_handle_in_the_admin_restores_it(alice: Person) -> None:
    old = make_agent(alice.user, "notes")
    old.soft_delete()
    body = {**SETTINGS, "session": make_session(alice.user).pk, "slug": "notes"}
    assert browser(alice.session).post(f"{AGENTS}add/", body).status_code == 302
    assert Agent.objects.kept().get().pk == old.pk


def test_deleting_is_soft_one_by_one_and_in_numbers(alice: Person) -> None:
    one, two = make_agent(alice.user, "one"), make_agent(alice.user, "two")
    turn = make_turn(one, alice.user)
    client = browser(alice.session)
    assert "Are you sure" in text(client, f"{AGENTS}{one.pk}/delete/")
    client.post(f"{AGENTS}{one.pk}/delete/", {"post": "yes"})
    assert list(Agent.objects.kept()) == [two]
    act(client, AGENTS, "delete_selected", two, post="yes")
    assert not Agent.objects.kept().exists()
    assert Agent.objects.count() == 2
    assert Turn.objects.get() == turn
    assert "alice/one" in text(client, TURNS)


def test_a_new_agents_session_is_said_to_be_online(alice: Person) -> None:
    connect(make_session(alice.user, "notes", host="box"))
    assert "@notes (box), online" in text(browser(alice.session), f"{AGENTS}add/")


def test_saving_a_draft_says_that_it_cannot_be_asked_yet(alice: Person) -> None:
    client, note = browser(alice.session), "it cannot be asked yet"
    body = {**SETTINGS, "session": make_session(alice.user, "notes").pk, "slug": ""}
    assert note in client.post(f"{AGENTS}add/", body, follow=True).content.decode()
    url = f"{AGENTS}{Agent.objects.get().pk}/change/"
    assert note in client.post(url, SETTINGS, follow=True).content.decode()
    published = client.post(url, {**SETTINGS, "status": "published"}, follow=True)
    assert note not in published.content.decode()


def test_the_list_of_turns_shows_when_and_the_start_of_what_was_asked(alice: Person) -> None:
    at = datetime(2026, 11, 21, 7, 6, 1, tzinfo=UTC)
    turn = make_turn(make_agent(alice.user), alice.user, "denied", question="x" * 61, asked_at=at)
    page = text(browser(alice.session), TURNS)
    assert "21 Nov 2026, 07:06:01 UTC" in page
    assert "x" * 59 + "…" in page
    assert "x" * 60 not in page
    assert "None" not in text(browser(alice.session), f"{TURNS}{turn.pk}/change/")


def test_turns_can_be_read_and_nothing_else(alice: Person) -> None:
    turn = make_turn(make_agent(alice.user), alice.user, question="<script>alert(1)</script>")
    client = browser(alice.session)
    page = text(client, f"{TURNS}{turn.pk}/change/")
    assert "&lt;script&gt;alert(1)" in page
    assert 'name="_save"' not in page
    for url in (f"{TURNS}add/", f"{TURNS}{turn.pk}/delete/"):
        assert client.get(url).status_code == 403
    assert client.post(f"{TURNS}{turn.pk}/change/", {"question": "other"}).status_code == 403
    assert "delete_selected" not in text(client, TURNS)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 3),
        ("outcome__exact=denied", 1),
        ("why=timeout", 1),
        ("surface__exact=a2a", 3),
        ("q=weather", 1),
        ("q=bob", 1),
        ("agent={one}", 2),
        ("agent=999999", 0),
        ("agent=x", 3),
        (f"agent={10**30}", 3),
    ],
)
def test_turns_can_be_filtered_and_searched(alice: Person, bob: Person, query: str, count: int) -> None:
    one, two = make_agent(alice.user, "one"), make_agent(alice.user, "two")
    make_turn(one, bob.user, question="the weather?")
    make_turn(one, alice.user, "denied", reason="offline")
    make_turn(two, alice.user, "failed", reason="timeout")
    answer = browser(alice.session).get(f"{TURNS}?{query.format(one=one.pk)}")
    assert len(answer.context["cl"].result_list) == count


@pytest.mark.parametrize(
    "path", [f"{TURNS}?why=%00", f"{TURNS}?q=%00", f"{AGENTS}?status__exact=%00", f"{AGENTS}%00/"]
)
def test_nul_in_an_address_of_the_admin_is_a_400(alice: Person, path: str) -> None:
    assert browser(alice.session).get(path.replace("%00", "0")).status_code in (200, 301, 302, 404)
    assert browser(alice.session).get(path).status_code == 400


@pytest.mark.parametrize(("chosen", "status"), [("999999", 302), ("x", 400), ("\0", 400), (str(10**30), 400)])
def test_rows_are_chosen_by_number(alice: Person, chosen: str, status: int) -> None:
    make_turn(make_agent(alice.user), alice.user)
    for path, action in ((AGENTS, "publish"), (CREDENTIALS, "revoke")):
        answer = browser(alice.session).post(path, {"action": action, "_selected_action": chosen})
        assert answer.status_code == status


def test_the_agent_filter_names_own_agents_only(alice: Person, bob: Person) -> None:
    make_agent(bob.user, "foreign")
    make_agent(alice.user, "one")
    make_agent(alice.user, "two")
    page = text(browser(alice.session), TURNS)
    assert "@alice/two" in page
    assert "foreign" not in page


ASKED = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", 'plain, with "quotes"\nand lines']


@pytest.mark.django_db(transaction=True)
def test_turns_leave_as_csv_whose_formulas_are_text(alice: Person, bob: Person) -> None:
    agent = make_agent(alice.user)
    turns = [make_turn(agent, bob.user, question=question) for question in ASKED]
    turns.append(make_turn(agent, None, "denied", reason="offline", question="-"))
    turns.append(make_turn(make_agent(bob.user), alice.user, question="not hers"))
    with asyncio.Runner() as loop:
        head, body = loop.run(download(alice, turns))
    assert head["Content-Type"] == "text/csv; charset=utf-8"
    assert head["Content-Disposition"] == 'attachment; filename="turns.csv"'
    lines = list(csv.DictReader(io.StringIO(body)))
    assert [line["question"] for line in lines] == ["'-", ASKED[5], "'\tx", "'@SUM(A1)", "'-1", "'+1", "'=1+1"]
    assert (lines[0]["caller"], lines[0]["reason"], lines[0]["outcome"]) == ("(public)", "offline", "denied")
    assert lines[1]["agent"] == "alice/helper"


async def download(person: Person, turns: list[Turn]) -> tuple[Any, str]:
    """Export these turns as the hub serves it, over ASGI."""
    client = AsyncClient()
    client.cookies[COOKIE] = person.session
    chosen = {"action": "export_csv", "_selected_action": [turn.pk for turn in turns]}
    answer = await client.post(TURNS, chosen)
    return answer, b"".join([chunk async for chunk in answer.streaming_content]).decode()


def test_credentials_are_revoked_and_never_shown(alice: Person) -> None:
    credential = Credential.objects.get(prefix=alice.app[:14])
    client = browser(alice.session)
    for path in (CREDENTIALS, f"{CREDENTIALS}{credential.pk}/change/"):
        page = text(client, path)
        assert credential.prefix in page
        assert alice.app not in page
        assert credential.digest not in page
    for url in (f"{CREDENTIALS}add/", f"{CREDENTIALS}{credential.pk}/delete/"):
        assert client.get(url).status_code == 403
    act(client, CREDENTIALS, "revoke", credential)
    credential.refresh_from_db()
    assert not credential.is_live
    assert credential.prefix not in text(client, f"{CREDENTIALS}?good=yes")
    assert credential.prefix in text(client, f"{CREDENTIALS}?good=no")
    assert client.get(f"{CREDENTIALS}?name__startswith=t").status_code == 200
    assert client.get(f"{CREDENTIALS}?digest__startswith=a").status_code == 400


def test_staff_suspend_users_and_change_nothing_else_of_them(alice: Person, staff: Person) -> None:
    url = f"/admin/accounts/user/{alice.user.pk}/change/"
    guess = browser(staff.session).get("/admin/accounts/user/?password__startswith=p")
    assert guess.status_code == 400
    client = browser(staff.session)
    assert "password" not in text(client, url)
    assert client.post(url, {"login": "mallory", "is_staff": "on"}).status_code == 302
    user = User.objects.get(pk=alice.user.pk)
    assert (user.login, user.is_staff, user.is_active) == ("alice", False, False)
    assert client.post(url, {"is_active": "on"}).status_code == 302
    assert User.objects.get(pk=alice.user.pk).is_active


def test_staff_cannot_suspend_themselves(staff: Person) -> None:
    url = f"/admin/accounts/user/{staff.user.pk}/change/"
    assert browser(staff.session).post(url, {}).status_code == 403
    assert User.objects.get(pk=staff.user.pk).is_active
