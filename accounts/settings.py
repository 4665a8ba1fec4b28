"""The settings that `accounts` reads (kit/env.py). The hub sets what has no value here (docs/adr/0106)."""

from django.core.exceptions import ImproperlyConfigured

from accounts.signup import Provider, read_providers, read_signup
from kit import env

PUBLIC_URL: str
PUBLIC_ORIGIN: str  # without a path
IS_HTTPS: bool
SESSION_COOKIE_PATH: str
SECRET_KEY: str
SECRET_KEY_FALLBACKS: list[str]
RATE_STORAGE: str
MIN_PASSWORD_CHARS: int

PUBLIC_GITHUB = "https://github.com"
GITHUB_CLIENT_ID = env.text("GITHUB_CLIENT_ID")
"""Default: none: no GitHub sign-in
the OAuth app on GitHub, see [sign in with GitHub](../howto/sign-in-with-github.md)"""
GITHUB_CLIENT_SECRET = env.text("GITHUB_CLIENT_SECRET")
"""the secret of the OAuth app. Goes together with `GITHUB_CLIENT_ID`"""
if bool(GITHUB_CLIENT_ID) != bool(GITHUB_CLIENT_SECRET):
    raise ImproperlyConfigured("GITHUB_CLIENT_ID and GITHUB_CLIENT_SECRET go together: set both, or neither")
GITHUB_URL = env.base_url("GITHUB_URL", PUBLIC_GITHUB)
"""Default: `https://github.com`
GitHub, or your GitHub Enterprise server"""
GITHUB_API_URL = env.base_url(
    "GITHUB_API_URL", "https://api.github.com" if GITHUB_URL == PUBLIC_GITHUB else f"{GITHUB_URL}/api/v3"
)
"""Default: `https://api.github.com`; for another `GITHUB_URL`, `GITHUB_URL/api/v3`
the API of `GITHUB_URL`"""
OIDC_ISSUER = env.text("OIDC_ISSUER")
"""Default: none: no OpenID Connect
the providers to [sign in with](../howto/sign-in-without-github.md), up to 9, separated by spaces: the address of
each, without `/.well-known/openid-configuration`. Plain http only on loopback"""
OIDC_CLIENT_ID = env.text("OIDC_CLIENT_ID")
"""the hub's client id at each of them, in the same order"""
OIDC_CLIENT_SECRET = env.text("OIDC_CLIENT_SECRET")
"""the clients' secrets, in the same order"""
OIDC_NAME = env.text("OIDC_NAME")
"""Default: the issuers' host names
the names of the providers on the buttons of `/signin`, in the same order, separated by commas"""
OIDC_GROUPS_CLAIM = env.text("OIDC_GROUPS_CLAIM")
"""Default: none: sign-ins change no group
the claim of each provider, such as `groups`, whose values make people
[members of groups](../howto/work-as-a-group.md#members-by-a-claim), in the same order, separated by spaces; `-`
for a provider without one"""
OIDC_PROVIDERS: tuple[Provider, ...]
try:
    OIDC_PROVIDERS = read_providers(OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_NAME, OIDC_GROUPS_CLAIM)
except ValueError as wrong:
    raise ImproperlyConfigured(str(wrong)) from None
SIGNUP = env.read_as(
    "SIGNUP", "open", read_signup, "open, closed, or logins, org:NAMEs, mail addresses and @domains"
)
"""who may join by GitHub or OpenID Connect: `open` (every user), `closed` (no new users), or a list separated by
spaces or commas: logins and `org:NAME`s of GitHub, mail addresses and `@domain`s that an OpenID Connect provider
has verified. An organisation's active members may join; pending invitations do not count. Links of `manage.py
invite` work with every value. Existing users stay: suspend them in the admin"""
DEV_LOGIN = env.flag("DEV_LOGIN") and not GITHUB_CLIENT_ID and not OIDC_PROVIDERS
"""Default: `0` (`make run`: `1`)
`1`: the development sign-in, which accepts any login without a password. Refused unless `PUBLIC_URL` is loopback;
off whenever `GITHUB_CLIENT_ID` or `OIDC_ISSUER` is set"""
APP_ORIGINS = env.origins("APP_ORIGINS")
"""origins of apps, such as `https://app.example.org`, in addition to loopback: redirect URIs there are accepted,
and their pages may call `/api/v1` and `/mcp` with a Bearer token (CORS without credentials)"""
SIGNIN_RATE_PER_MINUTE = env.integer("SIGNIN_RATE_PER_MINUTE", 60, least=20)
"""sign-in starts, exchanges and typed codes of one address in any minute, each counted separately"""
TOKENS_PER_OWNER = env.integer("TOKENS_PER_OWNER", 200)
"""live channel and app tokens and AGNT keys one owner may have. A client that refreshes its tokens counts as one.
Sign-in sessions do not count, and `mint_token` does not check this limit"""
QUESTIONS_KEPT_DAYS = env.integer("QUESTIONS_KEPT_DAYS", 90, least=1, most=36_500)
"""days after which the text of a question is blanked in its turn, unless the agent's owner set another number.
The other columns of the turn are kept for `TURNS_KEPT_DAYS`"""
WEBHOOK_KEYS = env.keys("WEBHOOK_KEYS")
"""Default: none: `SECRET_KEY`
keys, newest first: the first encrypts webhooks' signing secrets, the secrets of push configs, the signing secrets
of AGNT keys and the hub's signing key in the database, and all of them decrypt. `SECRET_KEY` and its fallbacks
decrypt too. After adding one run [`rotate_webhook_keys`](commands.md#rotate_webhook_keys)"""
