"""`claw login`, `whoami`, `token mint`, `apps`, `auth sessions`, `logout`: request by request."""

import json

import pytest

from lab.hub_process import HubProcess
from tests.clients.claw import Claw, Failed, claw
from tests.clients.shapes import AUTH_SESSION, MINTED, TOKEN, USER, check, iso, items, matching, one_of, text
from tests.signin.clients import Browser, CommandLine

SESSION_TOKEN = matching("cw_sess_[0-9a-f]{32}")


def test_login_whoami_logout(clients_hub: HubProcess, browser: Browser, listener: CommandLine) -> None:
    code = listener.code(browser, "ann")
    assert set(listener.landed[-1]) == {"code", "state"}
    nameless = Claw(clients_hub.url, agent="clawborrator-cli")
    body = {"code": code, "code_verifier": listener.verifier}
    answer = nameless.call("POST", "/auth/oauth/token", body)
    check(answer, {"user": USER, "session": {"token": SESSION_TOKEN, "expiresAt": iso}})
    assert answer["user"]["githubLogin"] == "ann"

    me = Claw(clients_hub.url, answer["session"]["token"])
    assert check(me.call("GET", "/me"), USER) == answer["user"]
    check(me.call("GET", "/auth-sessions"), items(AUTH_SESSION))
    assert me.send("POST", "/auth/logout").status in (200, 204)
    assert me.send("POST", "/auth/logout").status < 300, "again is fine"
    with pytest.raises(Failed) as rejected:
        me.call("GET", "/me")
    assert (rejected.value.status, rejected.value.code) == (401, "unauthorized")


def test_token_mint_list_revoke(clients_hub: HubProcess) -> None:
    alice = claw(clients_hub, "alice")
    minted = check(alice.call("POST", "/tokens/channel", {"name": "lap"}), MINTED)
    assert (minted["name"], minted["kind"]) == ("lap", "channel")
    assert minted["token"].startswith(minted["prefix"])
    listed = check(alice.call("GET", "/tokens"), items(TOKEN))["items"]
    assert minted["id"] in [one["id"] for one in listed]
    assert minted["token"] not in json.dumps(listed)
    for _ in range(2):
        assert alice.send("DELETE", f"/tokens/{minted['id']}").status in (200, 204)
    assert minted["id"] not in [one["id"] for one in alice.call("GET", "/tokens")["items"]]
    spent = check(alice.call("GET", "/tokens?includeRevoked=true"), items(TOKEN))["items"]
    assert next(one for one in spent if one["id"] == minted["id"])["revokedAt"]


def test_app_mint(clients_hub: HubProcess) -> None:
    bob = claw(clients_hub, "bob")
    minted = bob.call("POST", "/auth/apps/mint", {"name": "dash"})
    shape = {"token": matching("cw_app_.+"), "tokenName": text, "kind": one_of("app"), "createdAt": iso}
    check(minted, shape)
    app = Claw(clients_hub.url, minted["token"])
    assert check(app.call("GET", "/me"), USER)["githubLogin"] == "bob"
    assert app.send("POST", "/auth/logout").status < 300
    assert app.send("GET", "/me").status == 401
