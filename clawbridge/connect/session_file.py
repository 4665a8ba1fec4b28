"""Remembers the session between two starts of the program."""

import fcntl
import hashlib
import logging
import os
from pathlib import Path
from uuid import UUID

logger = logging.getLogger(__name__)

STATE_VARIABLE = "XDG_STATE_HOME"


class SessionFile:
    """A file with the id of a session. One process at a time holds it; another one starts a session of its own.

    `hold` before `load` and `save`; the file is let go when the process ends.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held: int | None = None

    def hold(self) -> bool:
        """Make the file this process's own; False when another process has it, or it cannot be."""
        try:
            if self.path.parts[:1] == ("~",):
                raise ValueError("this user has no home directory")
            self.path.parent.mkdir(parents=True, exist_ok=True)
            held = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except (OSError, ValueError) as problem:
            logger.warning("session file %s is not usable: %s", self.path, problem)
            return False
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(held)
            logger.warning("session file %s is in use by another process: this one gets a new session", self.path)
            return False
        self._held = held
        return True

    def load(self) -> str | None:
        """Give the session stored in the file, or None if there is none to be had."""
        try:
            text = self.path.read_text(encoding="ascii").strip()
            return str(UUID(text)) if text else None
        except (OSError, ValueError) as problem:
            logger.warning("session file %s is not usable: %s", self.path, problem)
            return None

    def save(self, session_id: str) -> None:
        """Store the session; a file that cannot be written costs a warning, not the connection."""
        try:
            self.path.write_text(f"{session_id}\n", encoding="ascii")
        except (OSError, ValueError) as problem:
            logger.warning("session file %s is not usable: %s", self.path, problem)


def default_path(hub: str, name: str | None) -> Path:
    """Where the session of an agent of this name on this hub is kept; without a name, of the working directory."""
    home = os.environ.get(STATE_VARIABLE, "")
    state = Path(home) if Path(home).is_absolute() else Path(os.path.expanduser("~"), ".local", "state")
    place = hashlib.sha256(f"{hub.rstrip('/')}\n{name or os.getcwd()}".encode(errors="replace")).hexdigest()[:12]
    return state / "clawbridge" / f"{name or 'agent'}-{place}.session"
