"""`manage.py gateway status`: the state of the gateway, for operators and their scripts."""

import json
import sys
from argparse import ArgumentParser
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from django.conf import settings
from django.core.management.base import CommandError
from django.db import DatabaseError
from redis import Redis
from redis.exceptions import RedisError

from accounts.models import User
from gateway.service.health import DEGRADED, DOWN, HEALTHY, Line, report_probes, report_rows, report_team
from gateway.surface.health import STATUS_PATH
from hub.data_dir import read_addresses
from hub.management.command import HubCommand

REDIS_WITHIN_S = 2.0
ANSWER_WITHIN_S = 3.0
MAX_ANSWER_BYTES = 4_096
_FROM_HERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104  the address at which to ask a hub that listens everywhere


@dataclass(frozen=True, slots=True)
class RunningHub:
    """A process of the hub that answers. `hindrance`: why the process does not serve now; empty if it serves."""

    url: str
    hindrance: str
    has_gateway: bool


class Command(HubCommand):
    help = (
        "Ask the hub on this machine for the state of its gateway. The exit code is 0 when the gateway is healthy,"
        " 1 when it is degraded, 2 when it is down or the hub does not answer."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        actions = parser.add_subparsers(dest="action", required=True)
        status = actions.add_parser("status", help="running, version, port, uptime, connected agents")
        status.add_argument("--deep", action="store_true", help="also probe what the gateway depends on")
        status.add_argument("--login", help="with --deep: also the agents of this user's team")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print a line for each thing, and exit with the worst level of all."""
        if options["login"] and not options["deep"]:
            raise CommandError("--login goes with --deep", returncode=DOWN)
        lines = _ask_hubs()
        try:
            lines += _report(deep=options["deep"], login=options["login"])
        except DatabaseError as failure:
            lines.append(Line("database", f"out of reach ({type(failure).__name__})", DOWN))
        for line in lines:
            self.stdout.write(f"{line.name}: {line.text}")
        level = max(line.level for line in lines)
        self.stdout.write(f"status: {['healthy', 'degraded', 'down'][level]}")
        if level != HEALTHY:
            sys.exit(level)


def _ask_hubs() -> list[Line]:
    """Lines that say whether hubs answer at the addresses that they recorded in DATA_DIR, and at which."""
    recorded = read_addresses(settings.DATA_DIR)
    asked = {url: ask_hub(url) for url in recorded}
    found = [hub for hub in asked.values() if hub is not None]
    if not found:
        where = f"at {', '.join(recorded)}" if recorded else f"by a hub with DATA_DIR={settings.DATA_DIR}"
        return [Line("running", f"no: no answer {where}", DOWN)]
    addresses = [Line("address", hub.url) for hub in found]
    # A process that ends in order deletes its record: this one was killed, or hangs.
    addresses += [Line("address", f"{url}, no answer", DEGRADED) for url, hub in asked.items() if hub is None]
    addresses.append(Line("port", ", ".join(hub.url.rpartition(":")[2] for hub in found)))
    serving = [hub for hub in found if not hub.hindrance]
    if not serving:
        return [Line("running", f"yes, but it serves nothing now ({found[0].hindrance})", DEGRADED), *addresses]
    if not all(hub.has_gateway for hub in serving):
        return [Line("running", "no: GATEWAY is not 1", DOWN), *addresses]
    return [Line("running", "yes"), *addresses]


def _report(*, deep: bool, login: str | None) -> list[Line]:
    lines = list(report_rows(str(settings.SPECTACULAR_SETTINGS["VERSION"])))
    if deep:
        lines += report_probes(None if settings.IS_EMBEDDED else _ping_redis)
    elif not settings.IS_EMBEDDED:
        lines += _redis_if_away()
    if login:
        owner = User.objects.named(login)
        if owner is None:
            raise CommandError(f"no user has the login {login}", returncode=DOWN)
        lines += report_team(owner)
    return lines


def _redis_if_away() -> list[Line]:
    try:
        _ping_redis()
    except OSError:
        return [Line("redis", "out of reach", DEGRADED)]
    return []


def _ping_redis() -> None:
    """Ask Redis once.

    Raises:
        OSError: it does not answer.
    """
    redis = Redis.from_url(
        settings.REDIS_URL, socket_timeout=REDIS_WITHIN_S, socket_connect_timeout=REDIS_WITHIN_S
    )
    try:
        redis.ping()
    except RedisError as failure:
        raise OSError(str(failure)) from None
    finally:
        redis.close()


def ask_hub(url: str) -> RunningHub | None:
    """Ask the hub at an address whether it serves; None: no hub answers there."""
    for everywhere, here in _FROM_HERE.items():
        url = url.replace(f"//{everywhere}:", f"//{here}:")
    status, ready = _get(f"{url}/readyz")
    if status not in (200, 503) or not isinstance(ready.get("ok"), bool):
        return None
    said = [name if value is True else f"{name}: {value}" for name, value in ready.items() if name != "ok"]
    # Without a token the gateway answers 401 there; a hub without the gateway answers 404.
    asked, refused = _get(f"{url}{STATUS_PATH}") if ready["ok"] else (0, {})
    is_on = asked == 401 and refused.get("status") == 401
    return RunningHub(url, "" if ready["ok"] else ", ".join(said), has_gateway=is_on)


def _get(url: str) -> tuple[int, dict[str, object]]:
    """The status and the JSON object of an answer; 0 without an answer. Uses no proxy: the hub is local."""
    opener = build_opener(ProxyHandler({}))
    request = Request(url, headers={"Accept": "application/json"})  # noqa: S310  a hub recorded this address
    try:
        try:
            answer = opener.open(request, timeout=ANSWER_WITHIN_S)
        except HTTPError as refusal:
            answer = refusal
        with answer:
            body = json.loads(answer.read(MAX_ANSWER_BYTES))
            return answer.status, body if isinstance(body, dict) else {}
    except (OSError, ValueError):
        return 0, {}
