"""`manage.py gateway status`: how the gateway is, for operators and their scripts."""

import sys
from argparse import ArgumentParser
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import CommandError
from django.db import DatabaseError
from redis import Redis
from redis.exceptions import RedisError

from accounts.models import User
from gateway.team.status_report import DEGRADED, DOWN, HEALTHY, Line, report_basics, report_probes, report_team
from hub.management.command import HubCommand

REDIS_WITHIN_S = 2.0


class Command(HubCommand):
    help = (
        "Show how the gateway is. The exit code is 0 when it is healthy, 1 when it is degraded, 2 when it is down."
        " Works while the hub runs, and while it does not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Its options."""
        actions = parser.add_subparsers(dest="action", required=True)
        status = actions.add_parser("status", help="running, version, port, uptime, connected agents")
        status.add_argument("--deep", action="store_true", help="also probe what the gateway depends on")
        status.add_argument("--login", help="with --deep: also the agents of this user's team")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print a line for each thing, and exit with the worst level of all."""
        if options["login"] and not options["deep"]:
            raise CommandError("--login goes with --deep", returncode=DOWN)
        try:
            lines = _report(deep=options["deep"], login=options["login"])
        except DatabaseError as failure:
            lines = [Line("running", f"unknown: the database is out of reach ({type(failure).__name__})", DOWN)]
        for line in lines:
            self.stdout.write(f"{line.name}: {line.text}")
        level = max(line.level for line in lines)
        self.stdout.write(f"status: {['healthy', 'degraded', 'down'][level]}")
        if level != HEALTHY:
            sys.exit(level)


def _report(*, deep: bool, login: str | None) -> list[Line]:
    version = str(settings.SPECTACULAR_SETTINGS["VERSION"])
    at = urlsplit(settings.PUBLIC_URL)
    port = at.port or (443 if at.scheme == "https" else 80)
    lines = list(report_basics(version, port, is_on=settings.GATEWAY))
    if deep:
        lines += report_probes(None if settings.IS_EMBEDDED else _ping_redis)
    elif not settings.IS_EMBEDDED:
        lines += _redis_if_away()
    if login:
        owner = User.objects.filter(login__iexact=login).first()
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
