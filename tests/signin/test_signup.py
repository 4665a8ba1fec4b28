"""The users who may join, and the owner of a login."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage, manage
from lab.processes import ProgramError
from tests.github import GitHub
from tests.signin.clients import Browser, CommandLine, MakeBrowser, program, refused
from tests.signin.conftest import PLENTY
from tests.signin.test_revocation import set_active

SignIn = Callable[[str], Browser]


@pytest.fixture
def sign_in(signin_hub: HubProcess, make_browser: MakeBrowser) -> SignIn:
    """A new browser that signed in as a GitHub user."""

    def go(login: str, hub: HubProcess | None = None) -> Browser:
        browser = make_browser(hub or signin_hub)
        browser.sign_in(login)
        return browser

    return go


def me(browser: Browser) -> dict[str, object]:
    answer = browser.get("/api/v1/me")
    assert answer.status_code == 200, answer.text
    person: dict[str, object] = answer.json()
    return person


def test_a_closed_hub_accepts_no_new_users_and_keeps_whom_it_has(
    start_hub: StartHub, make_storage: MakeStorage, github: GitHub, make_browser: MakeBrowser
) -> None:
    home = make_storage("embedded")
    hub = start_hub(home, **github.settings, **PLENTY)
    assert make_browser(hub).sign_in("early").status_code == 302
    hub.stop()
    hub = start_hub(home, **github.settings, **PLENTY, SIGNUP="closed")
    assert make_browser(hub).sign_in("early").status_code == 302
    late = make_browser(hub)
    answer = late.sign_in("late")
    assert answer.status_code == 403
    assert "accepts no new users" in answer.text
    assert late.session is None
    with closing(CommandLine(hub)) as cli:
        back = late.get(late.agree(late.start(cli.start_url)))
        assert back.headers["location"].startswith(f"{cli.redirect_uri}?error=signup_closed&")


def test_a_named_login_may_join_in_any_case(
    listed_hub: HubProcess, make_browser: MakeBrowser, github: GitHub
) -> None:
    assert make_browser(listed_hub).sign_in("nAmed").status_code == 302
    assert make_browser(listed_hub).sign_in("named2").status_code == 403


def test_only_an_active_member_of_the_organisation_may_join(
    listed_hub: HubProcess, make_browser: MakeBrowser, github: GitHub
) -> None:
    for state, status in (("active", 302), ("pending", 403), (None, 403)):
        login = f"member-{state}"
        if state:
            github.memberships[login, "acme"] = state
        assert make_browser(listed_hub).sign_in(login).status_code == status, state
    asked = [query["scope"] for _, path, query in github.seen if path == "/login/oauth/authorize"]
    assert asked == ["read:org"] * 3


def test_a_lie_about_another_organisation_is_refused(
    listed_hub: HubProcess, make_browser: MakeBrowser, github: GitHub
) -> None:
    lie = {"state": "active", "organization": {"login": "evil"}}
    github.instead["/api/v3/user/memberships/orgs/acme"] = lambda exchange: exchange.answer(200, lie)
    assert make_browser(listed_hub).sign_in("liar").status_code == 403


def test_a_renamed_login_keeps_its_account(sign_in: SignIn, github: GitHub) -> None:
    before = me(sign_in("oldname"))
    github.people["newname"] = github.people.pop("oldname")
    after = me(sign_in("newname"))
    assert (after["id"], after["githubLogin"]) == (before["id"], "newname")


def test_a_reused_login_is_another_account_and_handles_stay(sign_in: SignIn, github: GitHub) -> None:
    first = sign_in("kim")
    before = me(first)
    github.people["kim"] = 999_001  # GitHub gave the name to another user
    second = sign_in("kim")
    after = me(second)
    assert after["id"] != before["id"]
    assert after["githubLogin"] == "kim"
    assert str(me(first)["githubLogin"]).startswith("kim-")  # signed in still, under a name of their own
    with program(first.hub.url, second.session) as client:
        assert client.get("/api/v1/tokens").json()["items"] == []


async def test_a_handle_never_moves_to_a_new_holder_of_the_login(sign_in: SignIn, github: GitHub) -> None:
    from lab.agents import Echo, publish  # noqa: PLC0415  needs a running loop

    first = sign_in("lea")
    with program(first.hub.url, first.session) as client:
        token = client.post("/api/v1/tokens/channel", json={"name": "a"}).json()["token"]
    async with Echo(first.hub.url, token) as agent:
        assert agent.session_id
        published = await publish(first.hub, first.session or "", agent.session_id, "notes")
        assert published["handle"] == "lea/notes"
        github.people["lea"] = 999_002
        second = sign_in("lea")
        with program(first.hub.url, second.session) as client:
            token = client.post("/api/v1/tokens/channel", json={"name": "b"}).json()["token"]
            async with Echo(first.hub.url, token) as other:
                body = {"sessionId": other.session_id, "name": "x", "slug": "notes", "status": "published"}
                refused(client.post("/api/v1/agents", json=body), "conflict", 409)
            held = client.get("/api/v1/agents/by-handle/lea/notes").json()
            refused(client.delete(f"/api/v1/agents/{held['id']}"), "not_found", 404)


def test_a_login_a_local_account_holds_is_refused_until_an_operator_settles_it(
    signin_hub: HubProcess, make_browser: MakeBrowser, github: GitHub
) -> None:
    signin_hub.mint("local-1", "session")
    signin_hub.mint("local-2", "session")
    for login in ("local-1", "local-2"):
        browser = make_browser(signin_hub)
        answer = browser.sign_in(login)
        assert answer.status_code == 403
        assert f"manage.py link_github --login {login} --github-id {github.id_of(login)}" in answer.text
        assert browser.session is None
    number = str(github.id_of("local-1"))
    manage(signin_hub.home.env, "link_github", "--login", "local-1", "--github-id", number)
    manage(signin_hub.home.env, "link_github", "--login", "local-2", "--rename", "local-2-old")
    linked, fresh = make_browser(signin_hub), make_browser(signin_hub)
    linked.sign_in("local-1")
    fresh.sign_in("local-2")
    with program(signin_hub.url, signin_hub.mint("local-1", "session")) as client:
        assert client.get("/api/v1/me").json()["id"] == me(linked)["id"]
    with program(signin_hub.url, signin_hub.mint("local-2", "session")) as client:
        old = client.get("/api/v1/me").json()
    assert (old["githubLogin"], me(fresh)["githubLogin"]) == ("local-2-old", "local-2")
    assert old["id"] != me(fresh)["id"]


def test_the_command_says_what_it_cannot_do(signin_hub: HubProcess) -> None:
    for arguments in (("--github-id", "1"), ("--rename", "x"), ()):
        with pytest.raises(ProgramError, match=r"no account|required"):
            manage(signin_hub.home.env, "link_github", "--login", "unknown", *arguments)


def test_who_is_suspended_does_not_get_in_by_github(
    signin_hub: HubProcess, make_browser: MakeBrowser, sign_in: SignIn
) -> None:
    sign_in("quinn")
    set_active(signin_hub, "quinn", is_active=False)
    browser = make_browser(signin_hub)
    answer = browser.sign_in("quinn")
    assert answer.status_code == 403
    assert "is suspended" in answer.text
    assert browser.session is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"SIGNIN_RATE_PER_MINUTE": "19"}, "SIGNIN_RATE_PER_MINUTE"),
        ({"SIGNUP": "org:"}, "SIGNUP"),
        ({"SIGNUP": "a b/c"}, "SIGNUP"),
        ({"GITHUB_CLIENT_ID": "x"}, "go together"),
        ({"GITHUB_URL": "http://github.example"}, "GITHUB_URL"),
        ({"GITHUB_API_URL": "https://user@api.example"}, "GITHUB_API_URL"),
        ({"APP_ORIGINS": "https://app.example/path"}, "APP_ORIGINS"),
    ],
)
def test_a_bad_setting_stops_the_start(tmp_path: Path, wrong: dict[str, str], said: str) -> None:
    with pytest.raises(ProgramError, match=said):
        manage({"DATA_DIR": str(tmp_path)} | wrong, "check")
