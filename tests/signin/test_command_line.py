"""A command line signs in through a browser and a listener on loopback."""

from typing import Any

from lab.callers import bearer
from tests.github import GitHub
from tests.signin.clients import Browser, MakeCli, program, refused, status


def test_a_new_login_from_the_same_machine_replaces_the_old_one(browser: Browser, make_cli: MakeCli) -> None:
    old = make_cli("m-1").login(browser)["session"]["token"]
    elsewhere = make_cli("m-2").login(browser)["session"]["token"]
    others = make_cli("m-1").login(browser, "ben")["session"]["token"]
    assert [status(browser.hub, one) for one in (old, elsewhere, others)] == [200] * 3
    new = make_cli("m-1").login(browser)["session"]["token"]
    assert [status(browser.hub, one) for one in (old, elsewhere, others, new)] == [401, 200, 200, 200]


def test_sessions_are_listed_and_revoked_by_their_prefix(browser: Browser, make_cli: MakeCli) -> None:
    first = make_cli("one").login(browser, "dora")["session"]["token"]
    second = make_cli("two").login(browser, "dora")["session"]["token"]
    with program(browser.hub.url, first) as client:
        rows: list[dict[str, Any]] = client.get("/api/v1/auth-sessions").json()["items"]
        mine = next(one for one in rows if one["isCurrent"])
        other = next(one for one in rows if one["machineId"] == "two")
        assert (mine["source"], mine["machineId"], len(mine["id"])) == ("cli", "one", 64)
        revoke = "/api/v1/auth-sessions/{}/revoke"
        refused(client.post(revoke.format(mine["id"][:8])), "conflict", 409)
        refused(client.post(revoke.format("abc")), "validation_failed")
        refused(client.post(revoke.format("0" * 40)), "not_found", 404)
        assert client.post(revoke.format(other["id"][:8])).json() == {"ok": True, "id": other["id"]}
        assert client.get("/api/v1/me", headers=bearer(second)).status_code == 401
        assert other["id"] not in [one["id"] for one in client.get("/api/v1/auth-sessions").json()["items"]]
        kept = client.get("/api/v1/auth-sessions", params={"includeRevoked": "true"}).json()["items"]
        assert other["id"] in [one["id"] for one in kept]


def test_logging_out_twice_is_fine(browser: Browser, make_cli: MakeCli) -> None:
    token = make_cli().login(browser)["session"]["token"]
    with program(browser.hub.url, token) as client:
        assert [client.post("/api/v1/auth/logout").status_code for _ in range(2)] == [204, 204]
        assert client.get("/api/v1/me").status_code == 401


def test_a_failed_sign_in_tells_the_command_line_why(browser: Browser, make_cli: MakeCli, github: GitHub) -> None:
    cli = make_cli()
    github.instead["/api/v3/user"] = lambda exchange: exchange.answer(500)
    back = browser.get(browser.agree(browser.start(cli.start_url)))
    assert back.status_code == 302
    assert back.headers["location"].startswith(f"{cli.redirect_uri}?error=github_failed&")
    assert f"state={cli.state}" in back.headers["location"]
