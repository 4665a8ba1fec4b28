from importlib import import_module
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin.checks import check_admin_app
from django.core import checks

from a2a_bridge import settings as of_a2a_bridge
from accounts import settings as of_accounts
from agents import settings as of_agents
from agnt import settings as of_agnt
from evaluations import settings as of_evaluations
from gateway import settings as of_gateway
from webhooks import settings as of_webhooks

SETTINGS_OF_APPS = (of_a2a_bridge, of_accounts, of_agents, of_agnt, of_evaluations, of_gateway, of_webhooks)


class HubConfig(AppConfig):
    name = "hub"

    def ready(self) -> None:
        """Give lower packages the settings and callbacks that they may not import, in every program of the hub."""
        from accounts.audit_log import on_recorded  # noqa: PLC0415  models load first
        from accounts.models import on_revoked  # noqa: PLC0415
        from agents.core.presence import archive_sessions_of  # noqa: PLC0415
        from webhooks.service.staff_acts import queue_staff_acts  # noqa: PLC0415

        inject_settings()
        on_revoked(archive_sessions_of)
        on_recorded(queue_staff_acts)
        checks.register(_check_deployment, "clawbridge", deploy=True)
        checks.register(_check_admin, checks.Tags.admin)


def inject_settings() -> None:
    """Give the apps the values of Django's settings: the hub's, and those that a test changed (docs/adr/0106)."""
    for module in SETTINGS_OF_APPS:
        for name in {*module.__annotations__, *filter(str.isupper, vars(module))}:
            setattr(module, name, getattr(settings, name))


def _check_deployment(**_: Any) -> list[checks.CheckMessage]:
    """The checks of `check --deploy`.

    The module of the checks is imported here, as no other program needs it (docs/adr/0163).
    """
    return [message for check in import_module("hub.checks").CHECKS for message in check()]


def _check_admin(**_: Any) -> list[checks.CheckMessage]:
    """Django's check of the admin, once its tables are registered: the URLs import them, not Django's start."""
    import_module("hub.urls")
    found: list[checks.CheckMessage] = check_admin_app(None)
    return found
