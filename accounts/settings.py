"""The settings that `accounts` reads; hub/app_settings.py sets them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from accounts.providers import Provider
from accounts.signup import Signup
from kit.injected import Injected


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountsSettings:
    """See docs/reference/settings.md. `cookie_path`: of the session's cookie; `public_origin`: without a path."""

    public_url: str
    public_origin: str
    is_https: bool
    cookie_path: str
    secret_key: str = field(repr=False)
    secret_key_fallbacks: Sequence[str] = field(repr=False)
    webhook_keys: Sequence[str] = field(repr=False)
    github_client_id: str
    github_client_secret: str = field(repr=False)
    github_url: str
    github_api_url: str
    oidc_providers: tuple[Provider, ...]
    signup: Signup
    dev_login: bool
    app_origins: Sequence[str]
    rate_storage: str = field(repr=False)
    signin_rate_per_minute: int
    min_password_chars: int
    tokens_per_owner: int
    questions_kept_days: int


_settings = Injected[AccountsSettings]("accounts.settings")
get_settings, set_settings = _settings.get, _settings.set
