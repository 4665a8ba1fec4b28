"""Gives each app the settings that it reads: no module outside `hub` reads Django's (docs/adr/0106)."""

from django.conf import settings

from a2a_bridge import settings as bridge
from accounts import settings as accounts
from agents import settings as agents
from agnt import settings as agnt
from gateway import settings as gateway
from webhooks import settings as webhooks


def inject_settings() -> None:
    """Set the settings of every app, as they are now. Every program of the hub does it while Django starts."""
    accounts.set_settings(
        accounts.AccountsSettings(
            public_url=settings.PUBLIC_URL,
            public_origin=settings.PUBLIC_ORIGIN,
            is_https=settings.IS_HTTPS,
            cookie_path=settings.SESSION_COOKIE_PATH,
            secret_key=settings.SECRET_KEY,
            secret_key_fallbacks=settings.SECRET_KEY_FALLBACKS,
            webhook_keys=settings.WEBHOOK_KEYS,
            github_client_id=settings.GITHUB_CLIENT_ID,
            github_client_secret=settings.GITHUB_CLIENT_SECRET,
            github_url=settings.GITHUB_URL,
            github_api_url=settings.GITHUB_API_URL,
            oidc_providers=settings.OIDC_PROVIDERS,
            signup=settings.SIGNUP,
            dev_login=settings.DEV_LOGIN,
            app_origins=settings.APP_ORIGINS,
            rate_storage=settings.RATE_STORAGE,
            signin_rate_per_minute=settings.SIGNIN_RATE_PER_MINUTE,
            min_password_chars=settings.PASSWORD_CHARS,
            tokens_per_owner=settings.TOKENS_PER_OWNER,
            questions_kept_days=settings.QUESTIONS_KEPT_DAYS,
        )
    )
    webhooks.set_settings(
        webhooks.WebhooksSettings(
            webhook_ports=settings.WEBHOOK_PORTS,
            webhook_allow_private=settings.WEBHOOK_ALLOW_PRIVATE,
            webhooks_per_owner=settings.WEBHOOKS_PER_OWNER,
        )
    )
    agents.set_settings(
        agents.AgentsSettings(
            public_url=settings.PUBLIC_URL,
            agents_per_owner=settings.AGENTS_PER_OWNER,
            sessions_per_owner=settings.SESSIONS_PER_OWNER,
            sockets_per_owner=settings.SOCKETS_PER_OWNER,
            storage_per_owner_mb=settings.STORAGE_PER_OWNER_MB,
            files_kept_days=settings.FILES_KEPT_DAYS,
            remote_ports=settings.REMOTE_PORTS,
            remote_allow_private=settings.REMOTE_ALLOW_PRIVATE,
            remote_retry_s=settings.REMOTE_RETRY_S,
            trace_ui_url=settings.TRACE_UI_URL,
            mail_from=settings.DEFAULT_FROM_EMAIL if settings.SENDS_MAIL else "",
        )
    )
    bridge.set_settings(
        bridge.BridgeSettings(
            public_url=settings.PUBLIC_URL,
            reply_wait_s=settings.REPLY_WAIT_S,
            push_configs_per_caller=settings.PUSH_CONFIGS_PER_CALLER,
            dev_login=settings.DEV_LOGIN,
        )
    )
    gateway.set_settings(
        gateway.GatewaySettings(
            letters_per_owner=settings.LETTERS_PER_OWNER,
            letters_mb_per_owner=settings.LETTERS_MB_PER_OWNER,
        )
    )
    agnt.set_settings(
        agnt.AgntSettings(
            public_url=settings.PUBLIC_URL,
            signing_key=settings.A2A_SIGNING_KEY,
            venues_per_network=settings.VENUES_PER_NETWORK,
            invoices_dir=settings.INVOICES_DIR,
            stripe_api_key=settings.STRIPE_API_KEY,
            stripe_api_url=settings.STRIPE_API_URL,
            stripe_meter=settings.STRIPE_METER,
        )
    )
