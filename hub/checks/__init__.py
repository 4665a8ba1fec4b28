"""The hub's own checks for `manage.py check`; every id is in docs/reference/checks.md."""

from importlib import import_module
from typing import Any

from django.contrib.admin.checks import check_admin_app
from django.core import checks
from django.utils.module_loading import import_string

TAG = "clawbridge"
# Named here, and imported when the checks run: no other program needs these imports (docs/adr/0163).
CHECKS = (
    "settings.check_address",
    "settings.check_sign_in",
    "settings.check_durations",
    "settings.check_proxies",
    "settings.check_hosts",
    "settings.check_secrets",
    "settings.check_folder",
    "settings.check_invoices",
    "servers.check_sqlite",
    "servers.check_postgresql",
    "servers.check_worker",
    "servers.check_redis",
)


def register() -> None:
    """Register the checks: those of a deployment for `check --deploy`, the others for `check`."""
    checks.register(_check_deployment, TAG, deploy=True)
    checks.register(_check_admin, checks.Tags.admin)


def _check_deployment(**_: Any) -> list[checks.CheckMessage]:
    return [message for name in CHECKS for message in import_string(f"hub.checks.{name}")()]


def _check_admin(**_: Any) -> list[checks.CheckMessage]:
    """Django's check of the admin, once its tables are registered: the URLs import them, not Django's start."""
    import_module("hub.urls")
    found: list[checks.CheckMessage] = check_admin_app(None)
    return found
