"""Django's connection settings of PostgreSQL."""

from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from kit import sql

CONNECTIONS_EACH = 10  # connections of a process


def connection_settings(url: str) -> dict[str, object]:
    """The settings from postgres://user:password@host:port/name?sslmode=require.

    The query of the URL goes to libpq as it is.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql") or not parts.path.strip("/"):
        raise ImproperlyConfigured("DATABASE_URL: want postgres://user:password@host:port/name")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.strip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": parts.port or "",
        "CONN_HEALTH_CHECKS": True,  # after a restart of the server the connections in the pool are dead
        "OPTIONS": {
            # `idle_in_transaction_session_timeout`: a process that is stopped within a transaction loses its locks
            # before it counts as dead. The sweep, which ends its turns, and other processes wait for these locks.
            "options": "-c lock_timeout=4000 -c statement_timeout=30000"
            " -c idle_in_transaction_session_timeout=10000 -c timezone=UTC",
            "application_name": sql.APPLICATION_NAME,
            "connect_timeout": 5,
            "tcp_user_timeout": 10_000,  # ms; ends connections to a server that vanished without closing them
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            **dict(parse_qsl(parts.query)),
            "pool": {"min_size": 1, "max_size": CONNECTIONS_EACH, "timeout": 3},
        },
    }
