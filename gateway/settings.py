"""The settings that `gateway` reads; hub/app_settings.py sets them."""

from dataclasses import dataclass

from kit.injected import Injected


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """See docs/reference/settings.md."""

    letters_per_owner: int
    letters_mb_per_owner: int


_settings = Injected[GatewaySettings]("gateway.settings")
get_settings, set_settings = _settings.get, _settings.set
