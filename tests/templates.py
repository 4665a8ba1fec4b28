"""Databases that were migrated once, kept between runs of pytest until a migration or a library changes."""

import fcntl
import hashlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = ROOT / ".pytest_cache" / "templates"
OF_TABLES = (
    *("*/migrations/*.py", "hub/embedded_schema.py", "kit/full_text.py", "requirements/base.txt"),
    *("lab/hub_storage.py", "lab/servers.py"),
)


def kept(name: str, make: Callable[[Path], None]) -> Path:
    """The template of that name: a folder that `make` fills when none fits the code; those that do not fit go.

    Processes that want it at once wait for the one that makes it.
    """
    folder = PLACE / name
    folder.mkdir(parents=True, exist_ok=True)
    template = folder / _version()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            for old in filter(Path.is_dir, folder.iterdir()):
                shutil.rmtree(old)
            half = folder / "half"
            make(half)
            half.rename(template)
    return template


def _version() -> str:
    """Changes with every file that decides what a migrated database holds."""
    found = hashlib.sha256(sys.version.encode())
    for path in sorted(path for pattern in OF_TABLES for path in ROOT.glob(pattern)):
        found.update(str(path.relative_to(ROOT)).encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:16]
