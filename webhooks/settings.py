"""The settings that `webhooks` reads; hub/app_settings.py sets them."""

from dataclasses import dataclass

from kit.injected import Injected


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhooksSettings:
    """See docs/reference/settings.md."""

    webhook_ports: frozenset[int]
    webhook_allow_private: bool
    webhooks_per_owner: int


_settings = Injected[WebhooksSettings]("webhooks.settings")
get_settings, set_settings = _settings.get, _settings.set
