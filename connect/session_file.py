"""Remembers the session between two starts of the program."""

import logging
from pathlib import Path
from uuid import UUID

logger = logging.getLogger(__name__)


def load_session(path: Path) -> str | None:
    """Give the session stored in the file, or None if there is none to be had."""
    try:
        return str(UUID(path.read_text(encoding="ascii").strip()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        logger.warning("session file %s is not usable: %s", path, problem)
        return None


def save_session(path: Path, session_id: str) -> None:
    """Store the session; a file that cannot be written costs a warning, not the connection."""
    try:
        path.write_text(f"{session_id}\n", encoding="ascii")
    except (OSError, ValueError) as problem:
        logger.warning("session file %s is not usable: %s", path, problem)
