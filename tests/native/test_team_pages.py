"""The pages of a team: what its owner and the staff see, and what the owner changes."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from agents.models import Session
from gateway.models import FrameRecord, Letter, Proposal, SessionLog, TeamAgent, TeamPolicy, Vote
from gateway.service.seat import GATEWAY_LINK
from tests.native.desk import HOSTILE, text
from tests.native.rows import Person, browser, connect, make_session
from tests.native.test_desk import Marks

RULES = {
    "members": "alpha\r\nbeta\r\ncharlie",
    "threshold": "unanimous",
    "breaks_ties": "on",
    "steward": "steward",
    "queues_messages": "on",
    "requires_signature": "on",
    "frames_kept_days": "30",
    "session_hours": "48",
}


def seat(owner: Person, name: str, **fields: Any) -> Session:
    TeamAgent.objects.create(owner=owner.user, name=name, **fields)
    return make_session(owner.user, name, link=GATEWAY_LINK)


def letter(recipient: Session, state: str, size: int = 100) -> None:
    Letter.objects.create(
        owner=recipient.owner,
        recipient=recipient,
        sender_owner=recipient.owner,
        sender="alpha",
        message_id="m",
        envelope="{}",
        bytes=size,
        state=state,
        received_at=timezone.now(),
    )


def propose(owner: Person, *, state: str = "deliberating", text: str = "Ship it", **fields: Any) -> Proposal:
    now = timezone.now()
    defaults: dict[str, Any] = {
        "proposer": "steward",
        "members": ["alpha", "beta", "charlie"],
        "threshold": "simple",
        "deadline": now + timedelta(hours=1),
    }
    key = f"p-{Proposal.objects.count()}"
    return Proposal.objects.create(
        owner=owner.user, key=key, text=text, state=state, created_at=now, **defaults | fields
    )


def vote(proposal: Proposal, voter: str, word: str, **fields: Any) -> None:
    Vote.objects.create(proposal=proposal, voter=voter, vote=word, voted_at=timezone.now(), **fields)


def page(visitor: Person, path: str = "/desk/team") -> str:
    return text(browser(visitor.session), path)


def test_an_empty_team_says_how_agents_join(alice: Person) -> None:
    shown = page(alice)
    assert "No agents yet" in shown
    assert "No proposals yet" in shown
    assert "No frames were recorded" in shown
    assert 'href="/desk/connect"' in shown
    assert 'href="/desk/team"' in page(alice, "/desk")


def test_agents_are_shown_with_status_role_inbox_and_sessions(alice: Person) -> None:
    now = timezone.now()
    alpha = seat(alice, "alpha", role="triad-member", status="idle")
    connect(alpha)
    seat(alice, "beta", status="idle", is_active=False)
    for name, status in (("busy-one", "busy"), ("broken-one", "error")):
        connect(seat(alice, name, status=status))
    for state in ("queued", "queued", "dead", "read"):
        letter(alpha, state, 2048)
    SessionLog.objects.create(owner=alice.user, agent="alpha", session_id="s", created_at=now, last_entry_at=now)
    shown = page(alice)
    rows = shown.partition('data-live="agents"')[2].partition("</section>")[0].split("<tr>")
    [first, second, broken, busy] = rows[2:]
    assert 'class="state on">idle<' in first
    assert "triad-member" in first
    assert '<td class="number">2 <span class="type">4.0\u00a0KB</span></td><td class="number">1</td>' in first
    assert 'class="state off">offline<' in second  # what it said before it left does not count
    assert "not enrolled" in second
    assert 'class="state failed">error<' in broken
    assert 'class="state busy">busy<' in busy
    assert "<dd>3 of 4</dd>" in shown


def test_a_proposal_counts_the_votes_that_count(alice: Person) -> None:
    proposal = propose(alice)
    vote(proposal, "alpha", "reject", counts=False, reasoning="too early")
    vote(proposal, "alpha", "approve", reasoning="ready", confidence=0.8)
    vote(proposal, "beta", "abstain")
    assert "1 approve, 0 reject, 1 abstain, 1 of 3 missing" in page(alice)
    shown = page(alice, f"/desk/team/proposals/{proposal.pk}")
    ballot, _, past = shown.partition('id="past"')
    assert "ready" in ballot
    assert "0.8" in ballot
    assert "has not voted yet" in ballot
    assert "data-until=" in ballot
    assert "replaced" in past
    assert "too early" in past
    Proposal.objects.update(deadline=timezone.now() - timedelta(minutes=1))
    assert "closes now" in page(alice, f"/desk/team/proposals/{proposal.pk}")


def test_a_decided_proposal_shows_its_decision_and_late_votes(alice: Person) -> None:
    proposal = propose(alice, state="approved", has_consensus=True, decided_at=timezone.now())
    vote(proposal, "alpha", "approve")
    vote(proposal, "beta", "approve")
    vote(proposal, "charlie", "reject", counts=False, is_late=True)
    shown = page(alice, f"/desk/team/proposals/{proposal.pk}")
    assert "with consensus" in shown
    assert "did not vote" in shown
    assert ">late<" in shown
    assert "data-until=" not in shown


def test_a_tie_that_the_steward_broke_shows_the_stewards_vote(alice: Person) -> None:
    proposal = propose(alice, state="rejected", steward="steward", decided_at=timezone.now())
    vote(proposal, "steward", "reject", reasoning="no agreement")
    shown = page(alice, f"/desk/team/proposals/{proposal.pk}")
    assert "breaks ties" in shown
    assert "no agreement" in shown


def test_frames_are_shown_without_content_newest_first(alice: Person) -> None:
    now = timezone.now()
    for number in range(60):
        FrameRecord.objects.create(
            owner=alice.user,
            at=now - timedelta(seconds=number),
            source=f"from-{number:02}",
            destination="beta",
            type="message",
            outcome="refused" if number == 0 else "served",
            error_code=3002 if number == 0 else 0,
            bytes=10,
        )
    shown = page(alice)
    assert "3002" in shown
    assert "from-49" in shown
    assert "from-50" not in shown
    assert shown.index("from-00") < shown.index("from-01")


def test_a_team_is_seen_by_its_owner_and_the_staff(alice: Person, bob: Person, staff: Person) -> None:
    proposal = propose(alice, text="secret plan")
    seat(alice, "alpha")
    assert "secret plan" not in page(bob)
    seen = page(staff, "/desk/team?of=alice")
    assert "secret plan" in seen
    assert f'href="/desk/team/proposals/{proposal.pk}?of=alice"' in seen
    assert "/desk/team/agents/alpha" not in seen  # the staff changes nothing
    assert "secret plan" in page(staff, f"/desk/team/proposals/{proposal.pk}?of=alice")
    for path in ("/desk/team?of=alice", f"/desk/team/proposals/{proposal.pk}?of=alice"):
        assert browser(bob.session).get(path).status_code == 404
    assert browser(staff.session).get("/desk/team?of=unknown").status_code == 404
    for path in (f"/desk/team/proposals/{proposal.pk}", "/desk/team/agents/alpha", "/desk/team/agents/unknown"):
        assert browser(bob.session).get(path).status_code == 404
        assert browser(staff.session).get(path).status_code == 404


def test_what_agents_wrote_is_escaped(alice: Person) -> None:
    proposal = propose(alice, text=HOSTILE, reasoning=HOSTILE, category=HOSTILE[:32], proposer=HOSTILE[:160])
    vote(proposal, "alpha", "approve", reasoning=HOSTILE)
    FrameRecord.objects.create(
        owner=alice.user, at=timezone.now(), source=HOSTILE[:160], type="message", outcome="served", bytes=1
    )
    for path in ("/desk/team", f"/desk/team/proposals/{proposal.pk}"):
        marks = Marks()
        marks.feed(page(alice, path))
        assert marks.bad == []


def test_the_rules_of_a_team_are_set(alice: Person) -> None:
    assert browser(alice.session).post("/desk/team/rules", RULES).status_code == 302
    policy = TeamPolicy.objects.get(owner=alice.user)
    assert policy.members == ["alpha", "beta", "charlie"]
    assert (policy.threshold, policy.breaks_ties, policy.steward) == ("unanimous", True, "steward")
    assert (policy.queues_messages, policy.stores_told, policy.requires_signature) == (True, False, True)
    assert (policy.frames_kept_days, policy.session_ttl_s) == (30, 48 * 3600)
    assert 'value="48"' in page(alice, "/desk/team/rules")


def test_without_a_row_the_page_shows_the_default_rules_and_makes_none(alice: Person) -> None:
    assert "alpha\nbeta\ncharlie" in page(alice, "/desk/team/rules").replace("\r", "")
    assert not TeamPolicy.objects.exists()


def test_bad_rules_are_refused_with_a_reason(alice: Person) -> None:
    for change, says in [
        ({"members": ""}, "This field is required"),
        ({"members": "Alpha Beta"}, "Alpha Beta: want lower-case letters"),
        ({"members": "\n".join(f"a{n}" for n in range(16))}, "at most 15"),
        ({"threshold": "weighted"}, "Select a valid choice"),
        ({"steward": ""}, "Name the agent that breaks ties"),
        ({"steward": "alpha"}, "cannot be a voter"),
        ({"steward": "Not A Name"}, "Not A Name: want lower-case letters"),
        ({"frames_kept_days": "0"}, "greater than or equal to 1"),
        ({"frames_kept_days": "9999"}, "less than or equal to 365"),
        ({"session_hours": "-1"}, "greater than or equal to 1"),
    ]:
        answer = browser(alice.session).post("/desk/team/rules", RULES | change)
        assert answer.status_code == 400, (change, says)
        assert says in answer.content.decode(), (change, says)
        assert not TeamPolicy.objects.exists(), (change, says)


def test_an_agents_role_enrolment_and_peers_are_set(alice: Person) -> None:
    seat(alice, "alpha", status="busy", may_hear_from=["beta"])
    form = {
        "role": "triad_member",
        "limits_sending": "on",
        "may_send_to": "beta\n@bob/helper",
        "may_hear_from": "beta",
    }
    assert browser(alice.session).post("/desk/team/agents/alpha", form).status_code == 302
    row = TeamAgent.objects.get(owner=alice.user, name="alpha")
    assert (row.role, row.is_active, row.status) == ("triad-member", False, "busy")
    assert row.may_send_to == ["beta", "@bob/helper"]
    assert row.may_hear_from is None  # its box is not checked
    browser(alice.session).post("/desk/team/agents/alpha", form | {"may_send_to": ""})
    assert TeamAgent.objects.get(owner=alice.user).may_send_to == []


def test_bad_settings_of_an_agent_are_refused(alice: Person) -> None:
    seat(alice, "alpha", role="researcher")
    for change in [
        {"role": "Not a role"},
        {"role": ""},
        {"may_send_to": "No Name"},
        {"may_hear_from": "a\n" * 300 + "$"},
    ]:
        answer = browser(alice.session).post("/desk/team/agents/alpha", {"role": "agent"} | change)
        assert answer.status_code == 400, change
        assert "Not saved" in answer.content.decode(), change
        assert TeamAgent.objects.get(owner=alice.user).role == "researcher", change


def test_a_seat_without_a_row_gets_one_when_it_is_changed(alice: Person) -> None:
    make_session(alice.user, "newcomer", link=GATEWAY_LINK)
    assert "newcomer" in page(alice)
    assert browser(alice.session).post("/desk/team/agents/newcomer", {"role": "coder"}).status_code == 302
    assert TeamAgent.objects.get(owner=alice.user, name="newcomer").role == "coder"
