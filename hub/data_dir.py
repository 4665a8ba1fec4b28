"""DATA_DIR: one hub runs on it at a time, and commands find the hub that is there."""

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from hub import env

SERVING = "serving"  # the folder with a file for each port, whose content is the address of the hub there
COMMANDS_ON_A_HUB = frozenset(
    {
        "mint_token",
        "link_github",
        "link_oidc",
        "invite",
        "move_database",
        "export_account",
        "erase_account",
        "rotate_webhook_keys",
        "rotate_signing_key",
        "halt",
        "resume",
        "pause_sending",
        "resume_sending",
        "gateway",
        "gateway_agent",
        "gateway_envelopes",
        "gateway_session",
        "load_team",
        "agnt_invoices",
    }
)


class DataDirInUse(Exception):
    """Another hub runs on this DATA_DIR."""


def lock(data_dir: Path) -> int:
    """Hold the directory until the process ends; the open file that holds it.

    Raises:
        DataDirInUse: another process holds it.
    """
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    held = os.open(data_dir / "hub.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        raise DataDirInUse(f"another hub runs on {data_dir}") from None
    return held


def record_address(data_dir: Path, url: str, *, is_alone: bool) -> Path:
    """Record that a hub serves at an address; returns the file, which the hub deletes when it stops.

    Processes that share the folder have different ports. `is_alone`: delete the files of other processes.
    """
    folder = data_dir / SERVING
    folder.mkdir(exist_ok=True)
    file = folder / url.rpartition(":")[2]
    if is_alone:
        for other in folder.iterdir():
            other.unlink()
    file.write_text(url)
    return file


def read_addresses(data_dir: Path) -> list[str]:
    """The recorded addresses, also of hubs that were killed."""
    folder = data_dir / SERVING
    return [file.read_text() for file in sorted(folder.iterdir())] if folder.exists() else []


def default_data_dir(base_dir: Path) -> Path:
    """`data` beside `manage.py`; for an installed hub, which has none, a folder of the user's."""
    if (base_dir / "manage.py").exists():
        return base_dir / "data"
    return Path(env.text("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), "clawbridge")


def check_hub_exists(arguments: Sequence[str], base_dir: Path) -> None:
    """Look for SQLite's file before the settings are loaded, which make DATA_DIR and a secret key.

    Raises:
        ImproperlyConfigured: the command needs an embedded hub, and DATA_DIR has none.
    """
    if not arguments or arguments[0] not in COMMANDS_ON_A_HUB or "--help" in arguments or env.text("DATABASE_URL"):
        return
    data_dir = Path(env.text("DATA_DIR", str(default_data_dir(base_dir)))).resolve()
    if not (data_dir / "hub.sqlite3").exists():
        raise ImproperlyConfigured(
            f"DATA_DIR={data_dir} has no hub: set DATA_DIR (or DATABASE_URL) to the hub's, or start the hub once"
        )
