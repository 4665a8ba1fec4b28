"""The page of one agent: who sees it, what it says in each state, and what of it changes."""

from datetime import timedelta

from django.utils import timezone

from agents.models import Agent, CallerBlock
from tests.native.rows import Person, browser, connect, make_agent, make_turn, spend

ADDRESS = "/agents/alice/helper"


def page(visitor: Person | None = None, path: str = ADDRESS, status: int = 200) -> str:
    answer = browser(visitor and visitor.session).get(path)
    assert answer.status_code == status
    text: str = answer.content.decode()
    return text


def advice(visitor: Person | None = None) -> tuple[str, bool]:
    """The advice of the page for this visitor, and if the visitor may ask; both ways to the page say the same."""
    told = browser(visitor and visitor.session).get(f"{ADDRESS}/standing").json()
    assert told["advice"] in page(visitor)
    return told["advice"], told["mayAsk"]


def test_it_shows_what_the_owner_wrote_as_text_and_safe_markdown(alice: Person, bob: Person) -> None:
    make_agent(
        alice.user,
        tagline="<i>tag</i>",
        description="# Hello\n\n*you* <script>pwned()</script> [x](javascript:pwned())",
        claude_md="<b>be brief</b>",
        personalization_prompt="  ",
        suggested_prompts=["<u>why?</u>", 7, None],
    )
    shown = page(bob, "/agents/ALICE/Helper")  # a handle in any case
    for words in ("&lt;i&gt;tag", "<h3>Hello</h3>", "<em>you</em>", "&lt;b&gt;be brief", "&lt;u&gt;why?"):
        assert words in shown
    for words in ("<script>p", 'href="javascript', "How it is told to speak", ">7<", ">None<"):
        assert words not in shown
    assert "/api/a2a/v1/agents/alice/helper/agent-card.json" in shown
    assert "/api/a2a/v1/agents/alice/helper/usage.md" in shown


def test_absent_draft_and_closed_look_the_same(alice: Person, bob: Person) -> None:
    make_agent(alice.user, "draft", "draft")
    make_agent(alice.user, "private", access="private")
    make_agent(alice.user, "deleted").soft_delete()
    slugs = ["draft", "private", "deleted", "absent"]
    for visitor in (None, bob):
        answers = {page(visitor, f"/agents/alice/{slug}", 404).replace(slug, "SLUG") for slug in slugs}
        assert len({_without_token(answer) for answer in answers}) == 1
        for slug in slugs:
            assert browser(visitor and visitor.session).get(f"/agents/alice/{slug}/standing").status_code == 404
    assert "Search the directory" in answers.pop()
    assert "Private" in page(alice, "/agents/alice/private")


def test_any_address_is_answered(alice: Person) -> None:
    for handle in ["%00/x", "x/%00", "%ED%A0%80/x", "x/" + "y" * 5000, "%FF/%0A", "'/\"", "a/b%2Fc"]:
        for tail in ["", "/standing"]:
            assert browser(alice.session).get(f"/agents/{handle}{tail}").status_code == 404, tail


def test_online_it_is_there_for_the_asking(alice: Person, bob: Person) -> None:
    connect(make_agent(alice.user).session)
    assert advice(bob) == ("It is online and free. Ask away.", True)
    text, may_ask = advice()
    assert (text[:7], may_ask) == ("Sign in", False)
    assert f"/signin?next={ADDRESS.replace('/', '%2F')}" in page()


def test_offline_it_tells_the_owner_how_and_others_when(alice: Person, bob: Person, agent: Agent) -> None:
    agent.session.last_seen_at = timezone.now() - timedelta(hours=3, minutes=5)
    agent.session.save()
    text, may_ask = advice(bob)
    assert "last seen 3\xa0hours ago" in text
    assert not may_ask
    text, may_ask = advice(alice)
    assert "Start its program again" in text
    assert not may_ask


def test_busy_it_may_be_tried(alice: Person, bob: Person, agent: Agent) -> None:
    connect(agent.session)
    make_turn(agent, alice.user, None)
    text, may_ask = advice(bob)
    assert "another caller" in text
    assert may_ask
    assert advice(alice) == ("It is online and free. Ask away.", True)


def test_over_budget_it_says_when_there_is_more(alice: Person, bob: Person) -> None:
    agent = make_agent(alice.user, daily_budget=2)
    connect(agent.session)
    spend(agent, 2)
    text, may_ask = advice(bob)
    assert "midnight UTC" in text
    assert not may_ask
    assert "Raise its budget" in advice(alice)[0]
    type(agent).objects.update(daily_budget=0)
    assert "takes no questions" in advice(bob)[0]


def test_who_is_blocked_is_told_so(alice: Person, bob: Person) -> None:
    connect(make_agent(alice.user).session)
    CallerBlock.objects.create(owner=alice.user, caller=bob.user)
    text, may_ask = advice(bob)
    assert "does not take your questions" in text
    assert not may_ask


def test_the_longest_texts_stay_under_100_kb(alice: Person) -> None:
    noise = "".join(chr(0x4E00 + (number * 7919) % 20_000) for number in range(65_536))
    make_agent(
        alice.user,
        description=noise[:4096],
        claude_md=noise,
        personalization_prompt=noise[::-1],
        suggested_prompts=[noise[start : start + 400] for start in range(6)],
    )
    answer = browser(alice.session).get(ADDRESS, headers={"accept-encoding": "gzip"})
    assert "These are its first 6000 characters" in page()
    assert len(answer.content) < 60_000


def _without_token(page: str) -> str:
    head, _, rest = page.partition('name="csrfmiddlewaretoken" value="')
    return head + rest[64:]
