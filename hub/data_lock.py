"""One hub a DATA_DIR: SQLite and the embedded parts know nothing of a second process."""

import fcntl
import os
from pathlib import Path


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
