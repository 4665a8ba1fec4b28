"""The settings that `agents` reads; hub/app_settings.py sets them."""

from dataclasses import dataclass

from kit.injected import Injected


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsSettings:
    """See docs/reference/settings.md."""

    public_url: str
    agents_per_owner: int
    sessions_per_owner: int
    sockets_per_owner: int
    storage_per_owner_mb: int
    files_kept_days: int
    remote_ports: frozenset[int]
    remote_allow_private: bool
    remote_retry_s: float
    trace_ui_url: str
    mail_from: str


_settings = Injected[AgentsSettings]("agents.settings")
get_settings, set_settings = _settings.get, _settings.set
