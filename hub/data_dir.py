"""DATA_DIR: one hub at a time locks this folder, and commands read from it where a hub runs."""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from kit import env

BASE_DIR = Path(__file__).resolve().parent.parent
SERVING = "serving"  # the folder with a file for each port, whose content is the address of the hub there
COMMANDS_ON_A_HUB = frozenset(
    {
        "mint_token",
        "link_github",
        "link_oidc",
        "scim_token",
        "invite",
        "account",
        "group",
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
    """The folder DATA_DIR is in use by another hub."""


def lock(data_dir: Path) -> int:
    """Lock the folder until the process ends; returns the open file that holds the lock.

    Raises:
        DataDirInUse: another process holds it.
    """
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    held = os.open(data_dir / "hub.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        raise DataDirInUse(f"another hub runs on {data_dir}; set DATA_DIR to another folder") from None
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
    """The recorded addresses of hubs, also of hubs that were killed and could not delete theirs."""
    folder = data_dir / SERVING
    return [file.read_text() for file in sorted(folder.iterdir())] if folder.exists() else []


def read_data_dir(given: str, base_dir: Path) -> Path:
    """DATA_DIR; if none is given `data` beside `manage.py`, or for an installed hub a folder of the user."""
    if given:
        return Path(given).resolve()
    if (base_dir / "manage.py").exists():
        return (base_dir / "data").resolve()
    return Path(env.text("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), "clawbridge").resolve()


def check_hub_exists(arguments: Sequence[str], base_dir: Path) -> None:
    """Look for SQLite's file before the settings are loaded, which make DATA_DIR and a secret key.

    Raises:
        ImproperlyConfigured: the command needs an embedded hub, and DATA_DIR has none.
    """
    if not arguments or arguments[0] not in COMMANDS_ON_A_HUB or "--help" in arguments or env.text("DATABASE_URL"):
        return
    data_dir = read_data_dir(env.text("DATA_DIR"), base_dir)
    if not (data_dir / "hub.sqlite3").exists():
        raise ImproperlyConfigured(
            f"DATA_DIR={data_dir} has no hub: set DATA_DIR (or DATABASE_URL) to the hub's, or start the hub once"
        )


def keep_secret_key(data_dir: Path) -> str:
    """The secret key kept in DATA_DIR; a new key is written to a file that only its owner can read.

    Raises:
        ImproperlyConfigured: DATA_DIR cannot be written.
    """
    try:
        return _kept(data_dir)
    except OSError as problem:
        raise ImproperlyConfigured(f"DATA_DIR={data_dir}: cannot write there: {problem.strerror}") from None


def _kept(data_dir: Path) -> str:
    file = data_dir / "secret_key"
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not file.exists():
        draft = data_dir / f"secret_key.{os.getpid()}"
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(50))
        with contextlib.suppress(FileExistsError):  # another process wrote a key first: both use that one
            # `link` fails where the file exists; `rename` would replace a
            # key that another process uses already.
            os.link(draft, file)
        draft.unlink()
    return file.read_text()
