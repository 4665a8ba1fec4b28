"""Two people, and one of the staff."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from accounts import throttle
from agents.models import Agent, Session
from tests.carrying import carrying
from tests.native.rows import Person, browser, make_agent, make_session, person
from tests.native.transcripts import Told


@pytest.fixture
def alice(db: None) -> Person:
    """An owner."""
    return person("alice")


@pytest.fixture
def bob(db: None) -> Person:
    """Another user."""
    return person("bob")


@pytest.fixture
def staff(db: None) -> Person:
    """A member of the staff."""
    return person("root", is_staff=True)


@pytest.fixture
def carol(db: None) -> Person:
    """A user with whom sessions are shared."""
    return person("carol")


@pytest.fixture
def dave(db: None) -> Person:
    """A user whose login is known."""
    return person("dave")


@pytest.fixture
def session(alice: Person) -> Session:
    """A session of alice's."""
    return make_session(alice.user)


@pytest.fixture
def agent(alice: Person) -> Agent:
    """A published agent of alice's, `alice/helper`."""
    return make_agent(alice.user)


@pytest.fixture
def mails_are_sent(settings: Any) -> None:
    """The hub sends mails, and none was counted before the test."""
    settings.SENDS_MAIL = True
    settings.DEFAULT_FROM_EMAIL = "hub@example.org"
    throttle._limiter.cache_clear()  # users of different tests have the same id


@pytest.fixture
def signed_in(alice: Person) -> Client:
    """A browser in which alice is signed in."""
    return browser(alice.session)


@pytest.fixture
def told() -> Iterator[Told]:
    """The announcements during the test."""
    collector = Told()
    with carrying(collector):
        yield collector
