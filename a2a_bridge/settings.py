"""The settings that `a2a_bridge` reads; hub/app_settings.py sets them."""

from dataclasses import dataclass

from kit.injected import Injected


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeSettings:
    """See docs/reference/settings.md."""

    public_url: str
    reply_wait_s: float
    push_configs_per_caller: int
    dev_login: bool


_settings = Injected[BridgeSettings]("a2a_bridge.settings")
get_settings, set_settings = _settings.get, _settings.set
