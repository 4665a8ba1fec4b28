"""The hub's own checks for `manage.py check`; every id is in docs/reference/checks.md."""

from collections.abc import Iterator
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Caution
from django.db import DatabaseError, connection
from redis import Redis
from redis.exceptions import RedisError

from agents.models import Process
from agents.models.session import alive_since
from agnt.service.invoicers import InvoicerDown, make_invoicer
from hub.models import JobRun
from hub.postgresql import CONNECTIONS_EACH
from kit import env, sql
from kit.clock import db_now
from kit.full_text import has_trigrams, trigram_index

NETWORK_FILESYSTEMS = ("nfs", "cifs", "smb", "9p", "fuse.sshfs", "fuse.gluster", "ceph", "lustre", "afs")
MOUNTS = Path("/proc/self/mountinfo")
MIN_TOKEN_CHARS = 16


def check_address() -> Iterator[CheckMessage]:
    """PUBLIC_URL must be reachable from outside and use https."""
    if env.is_loopback(settings.PUBLIC_URL):
        yield Caution(
            f"PUBLIC_URL={settings.PUBLIC_URL} names this machine only: cards and links work here alone.",
            hint="Set PUBLIC_URL to the https origin that others use.",
            id="clawbridge.W001",
        )
    elif not settings.IS_HTTPS:
        yield Error(
            f"PUBLIC_URL={settings.PUBLIC_URL} is not https: tokens and cookies travel in the clear.",
            hint="Put a proxy that speaks TLS in front (deploy/nginx, deploy/Caddyfile) and set PUBLIC_URL to it.",
            id="clawbridge.E001",
        )


def check_sign_in() -> Iterator[CheckMessage]:
    """DEV_LOGIN."""
    if settings.DEV_LOGIN:
        yield Error(
            "DEV_LOGIN=1: every visitor of the hub can sign in as any user.",
            hint="Set DEV_LOGIN=0, and GITHUB_CLIENT_ID for people to sign in.",
            id="clawbridge.E002",
        )


def check_durations() -> Iterator[CheckMessage]:
    """TEST_TIME_SCALE, which DEV_LOGIN's rule holds for: only on loopback."""
    if settings.TEST_TIME_SCALE != 1 and not env.is_loopback(settings.PUBLIC_URL):
        yield Error(
            f"TEST_TIME_SCALE={settings.TEST_TIME_SCALE:g}: durations are shorter than documented.",
            hint="Unset TEST_TIME_SCALE: only tests set it.",
            id="clawbridge.E009",
        )


def check_proxies() -> Iterator[CheckMessage]:
    """TRUSTED_PROXIES names a proxy that speaks TLS, and not every address."""
    if settings.IS_HTTPS and not settings.TRUSTED_PROXIES:
        yield Caution(
            "PUBLIC_URL is https, but no proxy is trusted: all callers share its address and its rate limit.",
            hint="Set TRUSTED_PROXIES to the addresses your proxy calls the hub from, such as 127.0.0.1.",
            id="clawbridge.W002",
        )
    if any(ip_network(one).prefixlen == 0 for one in settings.TRUSTED_PROXIES):
        yield Error(
            "TRUSTED_PROXIES holds every address: a client can choose the address it is counted by.",
            hint="Name the proxies alone.",
            id="clawbridge.E003",
        )


def check_hosts() -> Iterator[CheckMessage]:
    """ALLOWED_HOSTS."""
    if "*" in settings.ALLOWED_HOSTS:
        yield Error(
            "ALLOWED_HOSTS holds `*`: pages answer to whatever name is sent.",
            hint="Name the hosts; that of PUBLIC_URL is allowed anyway.",
            id="clawbridge.E004",
        )


def check_secrets() -> Iterator[CheckMessage]:
    """Keys that are shared, and long enough."""
    file = settings.DATA_DIR / "secret_key"
    if not settings.IS_EMBEDDED and file.exists() and file.read_text() == settings.SECRET_KEY:
        yield Caution(
            f"SECRET_KEY is the one in {file}: processes with another DATA_DIR have another key.",
            hint="On more than one machine give all of them the same SECRET_KEY_FILE (or SECRET_KEY).",
            id="clawbridge.W003",
        )
    if 0 < len(settings.METRICS_TOKEN) < MIN_TOKEN_CHARS:
        yield Caution(
            f"METRICS_TOKEN has fewer than {MIN_TOKEN_CHARS} characters: it can be guessed.",
            hint="Take what `openssl rand -hex 24` prints.",
            id="clawbridge.W004",
        )


def check_folder() -> Iterator[CheckMessage]:
    """DATA_DIR: private, and where SQLite's locks work."""
    folder = settings.DATA_DIR
    if folder.exists() and folder.stat().st_mode & 0o077:
        yield Caution(
            f"{folder} is open to other users of this machine: the secret key is in it.",
            hint=f"chmod 700 {folder}",
            id="clawbridge.W005",
        )
    kind = filesystem_of(folder, MOUNTS)
    if settings.IS_EMBEDDED and kind.startswith(NETWORK_FILESYSTEMS):
        yield Error(
            f"{folder} is on a network filesystem ({kind}), where SQLite's locks and its WAL do not hold.",
            hint="Use a local disk, or PostgreSQL (DATABASE_URL and REDIS_URL).",
            id="clawbridge.E005",
        )


def check_invoices() -> Iterator[CheckMessage]:
    """STRIPE_API_KEY needs Stripe's library."""
    try:
        make_invoicer()
    except InvoicerDown as missing:
        yield Error(
            f"No bill is sent: {missing}.",
            hint="Install the extra, or unset STRIPE_API_KEY: bills are files then.",
            id="clawbridge.E010",
        )


def filesystem_of(folder: Path, mountinfo: Path) -> str:
    """The kind of filesystem a folder is on, by the longest mount point above it; empty when unknown."""
    try:
        lines = [line.split() for line in mountinfo.read_text().splitlines()]
    except OSError:
        return ""
    mounts = {one[4].replace("\\040", " "): one[one.index("-", 6) + 1] for one in lines if "-" in one[6:]}
    above = [point for point in mounts if folder.is_relative_to(point)]
    return mounts[max(above, key=len)] if above else ""


REDIS_WITHIN_S = 2.0
SWEEP_LATE_S = 60
DURABLE = {"fsync": ("on",), "synchronous_commit": ("on", "local", "remote_write", "remote_apply")}


def check_sqlite() -> Iterator[CheckMessage]:
    """Only one process may use SQLite: the lock on DATA_DIR ensures that, unless the folder is shared between
    machines.
    """
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


# In the order in which an operator reads the messages.
CHECKS = (
    check_address,
    check_sign_in,
    check_durations,
    check_proxies,
    check_hosts,
    check_secrets,
    check_folder,
    check_invoices,
    check_sqlite,
    check_postgresql,
    check_worker,
    check_redis,
)
