"""A session names its link; what the core does with a name, and rows of before."""

from importlib import import_module

from django.apps import apps

from agents import jobs
from agents.links.remote.server_state import open_breaker
from agents.models import Agent, RemoteServer, Session
from agents.models.choices import CHANNEL_LINK, Outcome
from agents.models.remote import REMOTE_LINK
from agents.models.session import is_online, online
from tests.native.rows import Person, make_agent, make_session
from tests.remote.caller import Caller, spent_today
from tests.remote.cards import serving_card

name_links = import_module("agents.migrations.0019_session_link").name_links


def make_server(owner: Person, name: str) -> RemoteServer:
    return RemoteServer.objects.create(session=make_session(owner.user, name), card_url="https://far.example")


def links() -> dict[str, str]:
    return dict(Session.objects.values_list("routing_name", "link"))


def test_the_migration_names_the_links_of_sessions_that_are_there(alice: Person) -> None:
    near = make_session(alice.user, "near")
    closed, opened = make_server(alice, "closed"), make_server(alice, "opened")
    open_breaker(opened.pk, "no answer")
    Session.objects.update(link=CHANNEL_LINK, reachable_from=None)
    name_links(apps, None)
    assert links() == {"near": CHANNEL_LINK, "closed": REMOTE_LINK, "opened": REMOTE_LINK}
    assert [is_online(one) for one in (near.pk, closed.session_id, opened.session_id)] == [False, True, False]
    opened.refresh_from_db()
    assert opened.session.reachable_from == opened.retry_at


def test_a_server_that_an_old_process_published_is_there_after_the_next_retention(alice: Person) -> None:
    agent = make_agent(alice.user)
    server = RemoteServer.objects.create(session=agent.session, card_url="https://far.example")
    assert not Agent.objects.filter(online()).exists()
    jobs.retain(90)
    assert Agent.objects.filter(online()).exists()
    server.session.refresh_from_db()
    assert server.session.link == REMOTE_LINK


async def test_a_session_of_a_link_that_the_hub_does_not_have_costs_no_budget(caller: Caller) -> None:
    with serving_card() as url:
        agent = await caller.publish(url)
        await Session.objects.filter(pk=agent.session_id).aupdate(link="gone")
        running = await caller.start(agent, "hello")
        settled = await running.settled
    assert (settled.outcome, settled.reason) == (Outcome.FAILED, "not_delivered")
    assert await spent_today(agent) == 0
