"""The settings that `agnt` reads; hub/app_settings.py sets them."""

from dataclasses import dataclass, field
from pathlib import Path

from kit.injected import Injected


@dataclass(frozen=True, slots=True, kw_only=True)
class AgntSettings:
    """See docs/reference/settings.md. `signing_key`: empty, `agnt.keys.get_master_key` derives one."""

    public_url: str
    signing_key: str = field(repr=False)
    venues_per_network: int
    invoices_dir: Path
    stripe_api_key: str = field(repr=False)
    stripe_api_url: str
    stripe_meter: str


_settings = Injected[AgntSettings]("agnt.settings")
get_settings, set_settings = _settings.get, _settings.set
