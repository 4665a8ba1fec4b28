"""The checks of the database and Redis of a hub. An empty or absent database is reported once."""

from collections.abc import Iterator
from datetime import timedelta

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Caution
from django.db import DatabaseError, connection
from redis import Redis
from redis.exceptions import RedisError

from agents.models import Process
from agents.models.session import alive_since
from hub.models import JobRun
from hub.postgresql import CONNECTIONS_EACH
from kit import sql
from kit.clock import db_now
from kit.full_text import has_trigrams, trigram_index

REDIS_WITHIN_S = 2.0
SWEEP_LATE_S = 60
DURABLE = {"fsync": ("on",), "synchronous_commit": ("on", "local", "remote_write", "remote_apply")}


def check_sqlite() -> Iterator[CheckMessage]:
    """One process on SQLite: the lock on DATA_DIR sees to it, unless the folder is shared between machines."""
    if not settings.IS_EMBEDDED:
        return
    try:
        living = _living()
    except DatabaseError:
        return  # before the first start
    if living > 1:
        yield Error(
            f"{living} processes live on one SQLite database: what one does the others do not see.",
            hint="Run one, or use PostgreSQL and Redis (DATABASE_URL and REDIS_URL).",
            id="clawbridge.E006",
        )


def check_postgresql() -> Iterator[CheckMessage]:
    """PostgreSQL keeps what it answered, and has room for every process."""
    if connection.vendor != "postgresql":
        return
    try:
        values = {name: sql.postgresql_setting(name) for name in (*DURABLE, "max_connections")}
        needed = (_living() + 1) * CONNECTIONS_EACH
    except DatabaseError as failure:
        yield Caution(
            f"The database could not be asked ({type(failure).__name__}).",
            hint="Check DATABASE_URL and that the server runs; then `manage.py migrate`.",
            id="clawbridge.W006",
        )
        return
    for name, good in DURABLE.items():
        if values[name] not in good:
            yield Error(
                f"PostgreSQL runs with {name}={values[name]}: asks that were answered may be lost in a crash.",
                hint=f"Set {name}=on.",
                id="clawbridge.E007",
            )
    if int(values["max_connections"]) < needed:
        yield Caution(
            f"PostgreSQL takes {values['max_connections']} connections; this hub may open {needed}.",
            hint="Raise max_connections, or run fewer processes: each opens up to 10, and so does the worker.",
            id="clawbridge.W007",
        )
    if not has_trigrams():
        indexes = [trigram_index(model.full_text) for model in apps.get_models() if hasattr(model, "full_text")]
        statements = "; ".join(["CREATE EXTENSION pg_trgm", *indexes])
        yield Caution(
            "Searches find no words with typing errors: the database has no extension pg_trgm.",
            hint=f"As an administrator of the database run {statements}; then start the hub again.",
            id="clawbridge.W011",
        )


def check_worker() -> Iterator[CheckMessage]:
    """A worker runs the sweeps."""
    if settings.IS_EMBEDDED:
        return
    try:
        swept = JobRun.objects.filter(name=JobRun.SWEEP).values_list("ended_at", flat=True).first()
        late = swept is None or db_now() - swept > timedelta(seconds=SWEEP_LATE_S)
    except DatabaseError:
        return  # W006 says so
    if late:
        yield Caution(
            f"No worker has swept in the last {SWEEP_LATE_S} s: webhooks, retention and dead processes wait.",
            hint="Run `celery -A hub worker` and one `celery -A hub beat`.",
            id="clawbridge.W008",
        )


def _living() -> int:
    return Process.objects.filter(beat_at__gt=alive_since(db_now())).count()


def check_redis() -> Iterator[CheckMessage]:
    """Redis must not evict jobs and tasks that are still needed."""
    if not settings.REDIS_URL:
        return
    try:
        with Redis.from_url(
            settings.REDIS_URL, socket_timeout=REDIS_WITHIN_S, socket_connect_timeout=REDIS_WITHIN_S
        ) as redis:
            memory = redis.info("memory")
    except (RedisError, OSError) as failure:
        yield Caution(
            f"Redis could not be asked ({type(failure).__name__}).",
            hint="Check REDIS_URL and that the server runs.",
            id="clawbridge.W009",
        )
        return
    if str(memory["maxmemory_policy"]).startswith("allkeys-"):
        yield Error(
            f"Redis drops any key when it is full ({memory['maxmemory_policy']}): jobs that wait are among them.",
            hint="Set maxmemory-policy volatile-ttl: only what expires anyway is dropped.",
            id="clawbridge.E008",
        )
    if not memory["maxmemory"]:
        yield Caution(
            "Redis has no maxmemory: it grows until the machine has none left.",
            hint="Set maxmemory, and maxmemory-policy volatile-ttl.",
            id="clawbridge.W010",
        )
