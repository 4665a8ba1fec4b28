"""The wizard: a name, a token shown once, and the agent that comes with it."""

import re
from typing import Any

from django.test import Client

from accounts.models import Credential
from agents.models import Agent, Connection
from clawbridge.connect import packing
from tests.native.desk import FIELDS, text
from tests.native.rows import Person, browser, connect, make_session


def test_the_wizard_shows_the_token_once_with_all_there_is_to_copy(alice: Person, settings: Any) -> None:
    settings.PUBLIC_URL = "https://hub.example"
    client = browser(alice.session)
    page = client.post("/desk/connect", {"name": "My Agent!"}).content.decode()
    credential = Credential.objects.latest("pk")
    assert (credential.kind, credential.name, credential.user) == ("channel", "my-agent", alice.user)
    token = re.search("ck_live_[0-9a-f]{32}", page)
    assert token is not None
    for copied in (
        f"export CLAWBRIDGE_TOKEN={token[0]}",
        "curl -fO https://hub.example/connect.pyz &amp;&amp; python3 connect.pyz",
        "connect.pyz --hub https://hub.example --name my-agent --echo",
        packing.checksum(),
        "wss://hub.example",
        "clawborrator-mcp",
        "python3 connect.pyz --preset claude --directory . --hub https://hub.example --name my-agent<",
        "--preset openclaw --directory . --access write --hub",
    ):
        assert copied in page
    later = text(client, f"/desk/connect/{credential.pk}")
    assert token[0] not in later
    assert "was shown when it was made" in later


def test_a_name_that_is_none_gets_the_form_back(alice: Person) -> None:
    before = Credential.objects.count()
    for name in ["", "   ", "!!!", "\0", "x" * 65, "日本"]:
        answer = browser(alice.session).post("/desk/connect", {"name": name})
        assert answer.status_code == 400, name
        assert 'id="name-error"' in answer.content.decode(), name
        assert Credential.objects.count() == before, name


def test_the_wizard_knows_when_the_agent_has_come_and_where_to_go_next(alice: Person, signed_in: Client) -> None:
    signed_in.post("/desk/connect", {"name": "newcomer"})
    credential = Credential.objects.latest("pk")
    path = f"/desk/connect/{credential.pk}"
    assert signed_in.get(f"{path}/state").json() == {"connected": False}
    assert "Check again" in text(signed_in, path)
    session = make_session(alice.user, "newcomer")
    connect(session)
    assert signed_in.get(f"{path}/state").json() == {"connected": False}
    Connection.objects.update(credential=credential)
    href = f"/desk/publish?session={session.public_id}"
    expected = {"connected": True, "name": "@newcomer", "href": href, "action": "Publish @newcomer"}
    assert signed_in.get(f"{path}/state").json() == expected
    assert href in text(signed_in, path)
    answer = signed_in.post(href, FIELDS | {"session": session.pk, "slug": ""})
    assert answer.status_code == 302
    agent = Agent.objects.get()
    assert signed_in.get(f"{path}/state").json()["href"] == f"/desk/agents/{agent.pk}"


def test_a_token_of_another_user_a_revoked_one_and_a_session_are_the_same_404(alice: Person, bob: Person) -> None:
    browser(alice.session).post("/desk/connect", {"name": "hers"})
    hers = Credential.objects.latest("pk")
    browser(bob.session).post("/desk/connect", {"name": "his"})
    his = Credential.objects.latest("pk")
    Credential.objects.filter(pk=his.pk).revoke()
    own_session = bob.user.credentials.filter(kind="session").first()
    assert own_session is not None
    client = browser(bob.session)
    for suffix in ("", "/state"):
        answers = [client.get(f"/desk/connect/{pk}{suffix}") for pk in (hers.pk, his.pk, own_session.pk, 10**30)]
        assert {(one.status_code, one.content) for one in answers} == {(404, answers[0].content)}
