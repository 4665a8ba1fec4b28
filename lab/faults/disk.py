"""The data folder of an embedded hub, which a fault fills."""

import os
import random
import resource
import shutil
import subprocess
from pathlib import Path

from lab.hub_storage import SQLITE_FILE

UNLIMITED_SIZE = "4g"  # memory is used for what is written only
TRIES = 100  # a hub that writes meanwhile needs more room than was seen


class Disk:
    """The data folder of a hub, which a fault can fill.

    Where this process may mount, the folder is a file system of its own, in memory: a write beyond its size fails
    with ENOSPC. Elsewhere no file of the hub's process may grow beyond a size (`RLIMIT_FSIZE`): such a write fails
    with EFBIG.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.is_mounted = shutil.which("mount") is not None and self._mount(f"size={UNLIMITED_SIZE},mode=700")

    def leave(self, room_bytes: int, pid: int) -> None:
        """Leave that much room, rounded up to a page.

        Without a mount: for each file of process `pid`, and up to a hundred bytes more, so that writes end at any
        byte.
        0: no file can grow, but on a mounted disk within its last page.
        """
        if self.is_mounted:
            tries = (self._mount(f"remount,size={self._used() + room_bytes}") for _ in range(TRIES))
            assert any(tries), f"{self.folder} was not made smaller"
        else:
            largest = max(file.stat().st_size for file in self.folder.glob(f"{SQLITE_FILE}*"))
            _limit_files(pid, largest + room_bytes + random.randrange(100) if room_bytes else 1)

    def remove_limit(self, pid: int) -> None:
        """Give the hub room again."""
        if self.is_mounted:
            assert self._mount(f"remount,size={UNLIMITED_SIZE}"), f"{self.folder} was not made larger"
        else:
            _limit_files(pid, resource.RLIM_INFINITY)

    def close(self) -> None:
        """Unmount the folder; its files stay, on the disk of the folder above."""
        if not self.is_mounted:
            return
        self.is_mounted = False
        copy = self.folder.with_name(f"{self.folder.name}.copy")
        try:
            shutil.copytree(self.folder, copy)
        finally:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)
        self.folder.rmdir()
        copy.rename(self.folder)

    def _used(self) -> int:
        disk = os.statvfs(self.folder)
        return (disk.f_blocks - disk.f_bfree) * disk.f_frsize

    def _mount(self, options: str) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.folder)]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0


def _limit_files(pid: int, size: int) -> None:
    _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, most))
