from django.apps import AppConfig
from django.conf import settings

from a2a_bridge import settings as of_a2a_bridge
from accounts import settings as of_accounts
from agents import settings as of_agents
from agnt import settings as of_agnt
from gateway import settings as of_gateway
from webhooks import settings as of_webhooks

SETTINGS_OF_APPS = (of_a2a_bridge, of_accounts, of_agents, of_agnt, of_gateway, of_webhooks)


class HubConfig(AppConfig):
    name = "hub"

    def ready(self) -> None:
        """Give lower packages the settings and callbacks that they may not import, in every program of the hub."""
        from accounts.models import on_revoked  # noqa: PLC0415  models load first
        from agents.core.presence import archive_sessions_of  # noqa: PLC0415
        from agnt.service import webhook_events  # noqa: PLC0415
        from hub.checks import register  # noqa: PLC0415
        from webhooks.wire.catalog import set_form  # noqa: PLC0415

        inject_settings()
        on_revoked(archive_sessions_of)
        set_form(webhook_events.EVENT_OF_STATUS.values(), webhook_events.FORM)
        register()


def inject_settings() -> None:
    """Give the apps the values of Django's settings: the hub's, and those that a test changed (docs/adr/0106)."""
    for module in SETTINGS_OF_APPS:
        for name in {*module.__annotations__, *filter(str.isupper, vars(module))}:
            setattr(module, name, getattr(settings, name))
