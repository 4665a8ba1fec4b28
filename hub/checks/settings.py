"""Settings that start a hub, and yet would hurt the one who deploys it."""

from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Caution

from agnt.service.invoicing.invoicers import make_invoicer
from agnt.service.invoicing.port import InvoicerDown
from kit import env

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
