"""The admin as an owner's desk: who opens it, whose rows it shows, credentials and users."""

import pytest
from django.test import Client
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from a2a_bridge.models import RecordedExchange, Thread
from accounts.admin_site import site
from accounts.authn import COOKIE
from accounts.group_invitations import invite_to_group
from accounts.groups import create_group
from accounts.models import Credential, Group, Invitation, Passkey, ProviderIdentity, ScimGroup, ScimUser, User
from accounts.scim_tokens import make_scim_token
from agents.models import Agent, CallerBlock, FailureGroup, Halt, ProblemNote, Rating, RemoteServer, Session, Turn
from agnt.models import Breaker, Cancellation, Invoice
from evaluations.models import EvaluationResult, EvaluationRun, QuestionSet, SavedQuestion
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
from tests.native.admin import AGENTS, CREDENTIALS, SETTINGS, TURNS, act
from tests.native.desk import text
from tests.native.rows import (
    Person,
    browser,
    connect,
    make_agent,
    make_client_grant,
    make_session,
    make_turn,
    spend,
)
from tests.native.test_answer_shares import make_share
from tests.webhooks.subscriptions import happen, subscribed

STAFF_ONLY = [
    "/admin/accounts/user/",
    "/admin/agents/session/",
    "/admin/agents/process/",
    "/admin/agents/connection/",
    "/admin/agents/dailyusage/",
]


def test_a_visitor_is_sent_to_the_sign_in_and_back(db: None) -> None:
    assert browser().get("/admin")["Location"] == "/admin/"
    first = browser().get(AGENTS)
    assert first["Location"] == f"/admin/login/?next={AGENTS}"
    assert browser().get(first["Location"])["Location"] == "/signin?next=%2Fadmin%2Fagents%2Fagent%2F"


def test_the_admin_opens_for_every_user_signed_in_and_not_suspended(alice: Person, signed_in: Client) -> None:
    assert "Administration" in text(signed_in, "/admin/")
    assert signed_in.get("/admin/login/")["Location"] == "/admin/"
    alice.user.is_active = False
    alice.user.save()
    assert signed_in.get("/admin/").status_code == 302


def test_signing_out_of_the_admin_revokes_the_session(alice: Person, signed_in: Client) -> None:
    assert signed_in.get("/admin/logout/").status_code == 405
    answer = signed_in.post("/admin/logout/")
    assert (answer["Location"], answer.cookies[COOKIE].value) == ("/", "")
    assert browser(alice.session).get("/admin/").status_code == 302


def test_there_are_no_passwords_to_change(signed_in: Client) -> None:
    assert signed_in.get("/admin/password_change/").status_code in (302, 404)
    assert "assword" not in text(signed_in, "/admin/")


def test_no_page_looks_up_any_row_of_any_table(alice: Person) -> None:
    with pytest.raises(NoReverseMatch):
        reverse("admin:view_on_site", args=[1, 1])
    for content_type in (1, 999):
        assert browser(alice.session).get(f"/admin/r/{content_type}/{alice.user.pk}/").status_code == 404


def test_admin_forms_keep_their_csrf_token(alice: Person, agent: Agent) -> None:
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
    Cancellation.objects.create(network=venue.network, venue=venue)
    Invoice.objects.create(network=venue.network, customer="acme", day=timezone.now().date())
    make_interaction(venue.network, key=key, venue=venue, booking=booking)


def have_evaluation(agent: Agent) -> None:
    now = timezone.now()
    of_agent = QuestionSet.objects.create(agent=agent, name="Hours")
    asked = SavedQuestion.objects.create(question_set=of_agent, position=0, text="When?", expectation="nine")
    run = EvaluationRun.objects.create(question_set=of_agent, cause="by_hand", started_at=now, ended_at=now)
    EvaluationResult.objects.create(run=run, question=asked, state="passed", ended_at=now)


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
    make_client_grant(bob.user)
    Invitation.objects.create(digest="0" * 64, login="new", expires_at=timezone.now())
    now = timezone.now()
    Thread.objects.create(caller=bob.user, agent=agent, context_id="c", title="t", began_at=now, last_asked_at=now)
    invite_to_group(create_group("team", "Team", made_by=bob.user), "member", by=bob.user)
    make_scim_token()
    ScimUser.objects.create(user=bob.user, user_name="bob")
    ScimGroup.objects.create(group=Group.objects.get(), display_name="team")
    FailureGroup.objects.create(agent=agent, reason="offline", first_at=now, last_at=now, opened_at=now)
    ProblemNote.objects.create(turn=Turn.objects.get(), agent=agent, caller=alice.user, text="slow")
    Rating.objects.create(turn=Turn.objects.get(), agent=agent, caller=alice.user, is_good=True, rated_at=now)
    RecordedExchange.objects.create(
        caller=bob.user, request_bytes=1, status=200, response_bytes=1, received_at=now, ended_at=now
    )
    have_evaluation(agent)
    have_team(bob.user, agent.session)
    have_network(bob.user)
    make_share(bob)
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


def test_an_owner_cannot_act_on_rows_of_another_user(bob: Person, signed_in: Client) -> None:
    agent = make_agent(bob.user)
    act(signed_in, AGENTS, "unpublish", agent)
    act(signed_in, AGENTS, "delete_selected", agent, post="yes")
    signed_in.post(f"{AGENTS}{agent.pk}/delete/", {"post": "yes"})
    signed_in.post(f"{AGENTS}{agent.pk}/change/", {**SETTINGS, "daily_budget": "1"})
    act(signed_in, CREDENTIALS, "revoke", Credential.objects.get(prefix=bob.session[:14]))
    agent.refresh_from_db()
    assert (agent.status, agent.deleted_at, agent.daily_budget) == ("published", None, 1000)
    assert Credential.objects.get(prefix=bob.session[:14]).is_live


def test_the_hubs_own_rows_are_for_the_staff(alice: Person, staff: Person) -> None:
    connect(make_agent(alice.user).session)
    spend(Agent.objects.get(), 1)
    for path in STAFF_ONLY:
        text(browser(staff.session), path)
        assert browser(alice.session).get(path).status_code == 403, path
        assert browser(staff.session).get(f"{path}add/").status_code == 403, path


def test_nul_in_an_address_of_the_admin_is_a_400(alice: Person) -> None:
    for path in [f"{TURNS}?why=%00", f"{TURNS}?q=%00", f"{AGENTS}?status__exact=%00", f"{AGENTS}%00/"]:
        assert browser(alice.session).get(path.replace("%00", "0")).status_code in (200, 301, 302, 404), path
        assert browser(alice.session).get(path).status_code == 400, path


def test_rows_are_chosen_by_number(alice: Person) -> None:
    make_turn(make_agent(alice.user), alice.user)
    for chosen, status in [("999999", 302), ("x", 400), ("\0", 400), (str(10**30), 400)]:
        for path, action in ((AGENTS, "publish"), (CREDENTIALS, "revoke")):
            answer = browser(alice.session).post(path, {"action": action, "_selected_action": chosen})
            assert answer.status_code == status, (chosen, status)


def test_credentials_are_revoked_and_never_shown(alice: Person, signed_in: Client) -> None:
    credential = Credential.objects.get(prefix=alice.app[:14])
    for path in (CREDENTIALS, f"{CREDENTIALS}{credential.pk}/change/"):
        page = text(signed_in, path)
        assert credential.prefix in page
        assert alice.app not in page
        assert credential.digest not in page
    for url in (f"{CREDENTIALS}add/", f"{CREDENTIALS}{credential.pk}/delete/"):
        assert signed_in.get(url).status_code == 403
    act(signed_in, CREDENTIALS, "revoke", credential)
    credential.refresh_from_db()
    assert not credential.is_live
    assert credential.prefix not in text(signed_in, f"{CREDENTIALS}?good=yes")
    assert credential.prefix in text(signed_in, f"{CREDENTIALS}?good=no")
    assert signed_in.get(f"{CREDENTIALS}?name__startswith=t").status_code == 200
    assert signed_in.get(f"{CREDENTIALS}?digest__startswith=a").status_code == 400


def test_staff_change_nothing_of_a_user_but_the_access(alice: Person, staff: Person) -> None:
    url = f"/admin/accounts/user/{alice.user.pk}/change/"
    guess = browser(staff.session).get("/admin/accounts/user/?password__startswith=p")
    assert guess.status_code == 400
    client = browser(staff.session)
    assert client.post(url, {"login": "mallory", "github_id": "7"}).status_code == 302
    user = User.objects.get(pk=alice.user.pk)
    assert (user.login, user.github_id, user.is_active) == ("alice", None, False)
    assert client.post(url, {"is_active": "on"}).status_code == 302
    assert User.objects.get(pk=alice.user.pk).is_active
