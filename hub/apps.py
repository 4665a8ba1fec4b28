from django.apps import AppConfig

from hub.app_settings import inject_settings


class HubConfig(AppConfig):
    name = "hub"

    def ready(self) -> None:
        """Give lower packages the settings and callbacks that they may not import, in every program of the hub."""
        from accounts.models import on_revoked  # noqa: PLC0415  models load first
        from agents.core.presence import archive_sessions_of  # noqa: PLC0415
        from agnt import webhook_events  # noqa: PLC0415
        from hub.checks import register  # noqa: PLC0415
        from webhooks.queues import set_form  # noqa: PLC0415

        inject_settings()
        on_revoked(archive_sessions_of)
        set_form(webhook_events.EVENT_OF_STATUS.values(), webhook_events.FORM)
        register()
