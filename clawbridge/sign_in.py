"""The hub and the token that a command uses; `login` by the device flow (RFC 8628), `logout`."""

import json
import os
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, cast
from uuid import uuid4

import click
import msgspec

from clawbridge import HubError, Refused, Unauthorized, Unreachable
from clawbridge.calls import HubRequest, checked_hub, convert, is_open_to_listeners, is_token
from clawbridge.checks import HUB_VARIABLE, TOKEN_VARIABLE, read_token
from clawbridge.client import Client
from clawbridge.terminal import CommandFailure, ExitCode, bad_arguments, one_line, report, write_json

CONFIG_VARIABLE = "XDG_CONFIG_HOME"
FIRST_POLL_S = 2.0  # RFC 8628 has a least time between two polls, and none before the first
SLOWER_BY_S = 5
MAX_APP_NAME_CHARS = 60
CHANNEL_PREFIX = "ck_live_"
LOGOUT = HubRequest("POST", "/api/v1/auth/logout")
Command = TypeVar("Command", bound=Callable[..., Any])
Connect = Callable[[], Client]


class StoredSignIn(msgspec.Struct):
    """The sign-in at one hub, as `login` stores it."""

    token: str
    login: str


class SignInFile(msgspec.Struct):
    """The file. `machine`: this installation, whose older token a sign-in replaces; `hub`: of the last one."""

    machine: str = msgspec.field(default_factory=lambda: uuid4().hex)
    hub: str = ""
    hubs: dict[str, StoredSignIn] = {}


class DeviceCodesAnswer(msgspec.Struct):
    """The hub's answer to `POST /api/v1/auth/device/code`."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: float
    interval: float


class DeviceFlowToken(msgspec.Struct):
    """The hub's answer to `POST /api/v1/auth/device/token`, once the user has allowed it."""

    access_token: str


class SignedInUser(msgspec.Struct, rename="camel"):
    """The hub's answer to `GET /api/v1/me`."""

    github_login: str


def config_path() -> Path:
    """The file with the stored sign-ins."""
    home = os.environ.get(CONFIG_VARIABLE, "")
    folder = Path(home) if Path(home).is_absolute() else Path(os.path.expanduser("~"), ".config")
    return folder / "clawbridge" / "hubs.json"


def load() -> SignInFile:
    """The stored sign-ins; a file that cannot be read is a failure, not an empty one."""
    path = config_path()
    try:
        return msgspec.json.decode(path.read_bytes(), type=SignInFile)
    except FileNotFoundError:
        return SignInFile()
    except (OSError, msgspec.DecodeError) as problem:
        raise bad_arguments(f"cannot read {path}: {problem}; remove the file, and sign in again") from None


def save(stored: SignInFile) -> None:
    """Replace the file. Only its user can read it."""
    path = config_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with TemporaryDirectory(dir=path.parent) as folder:  # it goes with what is in it, also after a failure
            file = Path(folder, path.name)
            file.touch(mode=0o600)
            file.write_text(json.dumps(msgspec.to_builtins(stored), indent=1))
            os.replace(file, path)
    except OSError as problem:
        raise bad_arguments(f"cannot write {path}: {problem}") from None


def hub_option(command: Command) -> Command:
    """Add `--hub`."""
    text = f"The hub's address (else ${HUB_VARIABLE}, else the hub of the last `clawbridge login`)."
    return click.option("--hub", metavar="URL", help=text)(command)


def with_hub(command: Command) -> Command:
    """Add the options that `open_hub` reads. The command gets `open_hub` with their values as `connect`."""

    @wraps(command)
    def run(*, hub: str | None, token: str | None, token_file: Path | None, **arguments: Any) -> None:
        command(connect=partial(open_hub, hub, token, token_file), **arguments)

    add = cast(Command, run)
    token_help = (
        f"A token cw_app_… or cw_sess_…; other users of the machine can read it here (else ${TOKEN_VARIABLE})."
    )
    file_type = click.Path(dir_okay=False, path_type=Path)
    add = click.option("--token", metavar="TOKEN", help=token_help)(add)
    file_help = "A file that holds the token alone."
    return hub_option(click.option("--token-file", type=file_type, metavar="PATH", help=file_help)(add))


def json_option(text: str) -> Callable[[Command], Command]:
    """Add `--json`."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def choose_hub(option: str | None, stored: SignInFile) -> str:
    """The hub of the option, the environment or the last sign-in.

    Raises:
        CommandFailure: no hub is named.
    """
    if chosen := option or os.environ.get(HUB_VARIABLE) or stored.hub:
        return checked_hub(chosen)
    raise bad_arguments(f"which hub? Use --hub URL, set {HUB_VARIABLE}, or run `clawbridge login --hub URL`")


def open_hub(hub: str | None, token: str | None, token_file: Path | None, **limits: float) -> Client:
    """A client of the chosen hub, with the chosen token.

    Raises:
        CommandFailure: the hub or the token is missing, or cannot be one.
    """
    stored = load()
    url = choose_hub(hub, stored)
    found = find_token(token, token_file) or os.environ.get(TOKEN_VARIABLE, "")
    if not found and url in stored.hubs:
        found = stored.hubs[url].token
    if not found:
        raise CommandFailure(ExitCode.NOT_SIGNED_IN, f"not signed in to {url}: run `clawbridge login --hub {url}`")
    return Client(url, checked_token(found, url), **limits)


def find_token(token: str | None, token_file: Path | None) -> str:
    """The token of an option, if there is one.

    Raises:
        CommandFailure: both options are there, or the file cannot be read.
    """
    if token and token_file:
        raise bad_arguments("want --token or --token-file, not both")
    if token:
        report(f"warning: other users of this machine can read --token: use --token-file or {TOKEN_VARIABLE}")
        return token
    if token_file is None:
        return ""
    try:
        return read_token(token_file)
    except ValueError as problem:
        raise bad_arguments(str(problem)) from None


def checked_token(token: str, hub: str) -> str:
    """Give the token back if it can be one that asks; the failure never shows it."""
    if token.startswith(CHANNEL_PREFIX):
        raise CommandFailure(
            ExitCode.NOT_SIGNED_IN,
            f"a channel token ({CHANNEL_PREFIX}…) connects agents and asks none: want cw_app_… or cw_sess_…",
        )
    if not is_token(token):
        raise CommandFailure(ExitCode.NOT_SIGNED_IN, "the token has characters that no token has")
    if is_open_to_listeners(hub):
        report(f"warning: {hub} is not https: others on the network can read the token")
    return token


@click.command()
@hub_option
@json_option("Print the code, then the sign-in, each as one line of JSON.")
def login(hub: str | None, as_json: bool) -> None:
    """Sign in to a hub with a browser.

    The command shows an address and a code. Open the address on any machine, sign in and allow the code. The token
    is stored in ~/.config/clawbridge/hubs.json ($XDG_CONFIG_HOME), which only you can read.
    """
    stored = load()
    url = choose_hub(hub, stored)
    if is_open_to_listeners(url):
        report(f"warning: {url} is not https: others on the network can read the token")
    with Client(url) as client:
        name = f"clawbridge on {platform.node() or 'a machine'}"
        shown = "".join(letter for letter in name if letter.isprintable())[:MAX_APP_NAME_CHARS]
        body = {"app_name": shown, "machine_id": stored.machine}
        answer = client.call(HubRequest("POST", "/api/v1/auth/device/code", body=body))
        codes = convert(url, answer, DeviceCodesAnswer)
        if as_json:
            write_json(
                {
                    "hub": url,
                    "verificationUri": codes.verification_uri,
                    "userCode": codes.user_code,
                    "expiresInS": codes.expires_in,
                }
            )
        click.echo(f"Open {one_line(codes.verification_uri_complete)}", err=True)
        click.echo(f"and allow the code {one_line(codes.user_code)}. Waiting, Ctrl-C ends it …", err=True)
        token = wait_for_token(client, codes)
    with Client(url, token) as client:
        signed_in = convert(url, client.call(HubRequest("GET", "/api/v1/me")), SignedInUser)
    user = one_line(signed_in.github_login)
    # Another terminal may have signed in meanwhile.
    stored = msgspec.structs.replace(load(), machine=stored.machine)
    previous = stored.hubs.get(url)
    stored.hubs[url], stored.hub = StoredSignIn(token, user), url
    save(stored)
    if previous and previous.login != user:  # the hub itself replaces a token of the same user
        with suppress(HubError), Client(url, previous.token) as client:
            client.call(LOGOUT)
    if as_json:
        write_json({"hub": url, "login": user})
    click.echo(f"signed in to {url} as {user}", err=True)
    if os.environ.get(TOKEN_VARIABLE):
        report(f"{TOKEN_VARIABLE} is set: commands use that token, not this sign-in")


def wait_for_token(client: Client, codes: DeviceCodesAnswer) -> str:
    """Poll until the user has decided, or the code expires.

    Raises:
        CommandFailure: the user denied it, or did not decide in time.
    """
    deadline = time.monotonic() + codes.expires_in
    interval_s = codes.interval
    request = HubRequest("POST", "/api/v1/auth/device/token", body={"device_code": codes.device_code})
    time.sleep(min(FIRST_POLL_S, interval_s))
    while time.monotonic() < deadline:
        try:
            answer = client.call(request)
            return convert(client.url, answer, DeviceFlowToken).access_token
        except Unreachable:
            pass
        except Refused as refused:
            if refused.reason == "slow_down":
                interval_s += SLOWER_BY_S
            elif refused.reason != "authorization_pending":
                raise CommandFailure(ExitCode.NOT_SIGNED_IN, f"not signed in: {refused}") from None
        time.sleep(interval_s)
    raise CommandFailure(ExitCode.NOT_SIGNED_IN, "not signed in: the code expired; run `clawbridge login` again")


@click.command()
@hub_option
@json_option("Print the hub as one line of JSON.")
def logout(hub: str | None, as_json: bool) -> None:
    """Revoke the token that `login` stored, and forget it."""
    stored = load()
    url = choose_hub(hub, stored)
    if url not in stored.hubs:
        raise CommandFailure(ExitCode.NOT_SIGNED_IN, f"not signed in to {url}")
    # A token that is revoked already is only forgotten.
    with Client(url, stored.hubs[url].token) as client, suppress(Unauthorized):
        client.call(LOGOUT)
    del stored.hubs[url]
    if stored.hub == url:
        stored.hub = next(iter(stored.hubs), "")
    save(stored)
    if as_json:
        write_json({"hub": url})
    click.echo(f"signed out of {url}", err=True)
