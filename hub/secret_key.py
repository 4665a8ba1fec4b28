"""Django's secret key: from the environment, else made once and kept in DATA_DIR."""

import contextlib
import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def secret_key(data_dir: Path, given: str) -> str:
    """The key; a new file is written whole and readable by its owner alone.

    Raises:
        ImproperlyConfigured: DATA_DIR cannot be written.
    """
    if given:
        return given
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
        with contextlib.suppress(FileExistsError):  # another process was first: its key stands
            # `link` fails where the file exists; `rename` would replace a
            # key that another process uses already.
            os.link(draft, file)
        draft.unlink()
    return file.read_text()
