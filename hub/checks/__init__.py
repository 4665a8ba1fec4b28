"""What `manage.py check --deploy` looks at besides Django's own; every id is in docs/reference/checks.md."""

from collections.abc import Callable, Iterator
from typing import Any

from django.core import checks

from hub.checks import servers, settings

TAG = "clawbridge"
CHECKS = (
    settings.check_address,
    settings.check_sign_in,
    settings.check_durations,
    settings.check_proxies,
    settings.check_hosts,
    settings.check_secrets,
    settings.check_folder,
    servers.check_sqlite,
    servers.check_postgresql,
    servers.check_worker,
    servers.check_redis,
)


def register() -> None:
    """Make them part of `check --deploy`."""
    for one in CHECKS:
        checks.register(_as_django_calls(one), TAG, deploy=True)


def _as_django_calls(
    find: Callable[[], Iterator[checks.CheckMessage]],
) -> Callable[..., list[checks.CheckMessage]]:
    def called(app_configs: Any = None, **options: Any) -> list[checks.CheckMessage]:
        del app_configs, options
        return list(find())

    return called
