"""The files that belong to the project."""

import os
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOT_OURS = {"data", "node_modules", "results"}


@cache
def tracked_files() -> tuple[Path, ...]:
    """Tracked files, and new ones that git would track; without git, all that do not look generated."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        answer = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return tuple(sorted(_walked()))
    names = {name for name in os.fsdecode(answer.stdout).split("\0") if name}
    return tuple(sorted(path for path in map(ROOT.joinpath, names) if path.is_file()))


def named(*patterns: str) -> list[Path]:
    return [path for path in tracked_files() if any(path.match(pattern) for pattern in patterns)]


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _walked() -> list[Path]:
    found: list[Path] = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [
            name
            for name in folders
            if (name not in NOT_OURS and not name.startswith((".", "__"))) or name == ".ci"
        ]
        found += [Path(folder, name) for name in files if not name.endswith(".pyc")]
    return found
