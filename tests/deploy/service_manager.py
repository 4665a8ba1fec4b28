"""systemd itself, in namespaces of its own: it runs the units of `deploy/systemd` where an operator installs them.

The processes share the machine's network, and nothing that they write stays.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lab.processes import Program
from lab.waiting import until
from tests.deploy.files import DEPLOY
from tests.repository.tracked import shown, tracked_files

SYSTEMD = Path("/lib/systemd/systemd")
UID = 60_001
PYTHON = "/opt/python"
INSTALLED = Path("opt/clawbridge")
CELERY = f"#!/{INSTALLED}/.venv/bin/python\nimport sys\nfrom celery.__main__ import main\nsys.exit(main())\n"
CGROUPS = Path("/sys/fs/cgroup")
# Of the control groups, systemd sees the hierarchies for its own use, each with our group as its root.
BOOT = """
set -eu
mount --bind "$STAGE/opt" /opt
mount --bind "$BASE" /opt/python
mount --bind "$PACKAGES" "/opt/clawbridge/.venv/lib/$LIB/site-packages"
mount --bind "$STAGE/etc" /etc
mount --bind "$STAGE/controllers" /proc/cgroups
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /var/lib
mount -t tmpfs -o mode=755 tmpfs /home
mount -t tmpfs -o mode=1777 tmpfs /var/tmp
touch /home/of-a-user /var/tmp/of-another-program
mount --bind -o ro /proc/sys /proc/sys
if mountpoint -q /sys/fs/cgroup/systemd; then
  umount -l /sys/fs/cgroup
  mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
  mkdir /sys/fs/cgroup/systemd /sys/fs/cgroup/unified
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
  mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
else
  umount -l /sys/fs/cgroup
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
export container=lxc SYSTEMD_UNIT_PATH=/etc/systemd/system SYSTEMD_LOG_TARGET=console
exec "$SYSTEMD" --system --unit=wanted.target --log-level=notice
"""


@dataclass(frozen=True)
class Manager:
    """A running systemd. `folder`: has the output of each unit."""

    folder: Path

    def output(self, unit: str) -> str:
        path = self.folder / f"{unit}.log"
        return path.read_text() if path.exists() else ""


def hierarchies() -> list[Path]:
    """The mounts in which systemd keeps its groups of processes."""
    named = [one for one in (CGROUPS / "systemd", CGROUPS / "unified") if (one / "cgroup.procs").exists()]
    return named or [CGROUPS]


@cache
def reason_to_skip() -> str:
    """Why this machine cannot run units."""
    if not SYSTEMD.exists() or os.geteuid():
        return "no systemd, or not root"
    command = ["unshare", "--pid", "--mount", "--ipc", "--uts", "--cgroup", "--fork", "--mount-proc", "true"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        return "no namespaces here"
    if not all(os.access(one / "cgroup.procs", os.W_OK) for one in hierarchies()):
        return "no control groups here"
    return ""


@contextmanager
def running_units(folder: Path, env: Mapping[str, str], units: Mapping[str, str]) -> Iterator[Manager]:
    """Run units by the names of systemd, each with further lines for its section `Service`."""
    stage = folder / "stage"
    _install(stage)
    _write_etc(stage / "etc", env)
    for unit, lines in units.items():
        _add_override(stage / "etc/systemd/system", unit, f"{lines}\nStandardOutput=file:{folder}/{unit}.log\n")
    (stage / "etc/systemd/system/wanted.target").write_text(
        f"[Unit]\nDefaultDependencies=no\nWants={' '.join(units)}\n"
    )
    (stage / "controllers").write_text("#subsys_name\thierarchy\tnum_cgroups\tenabled\n")
    name = f"clawbridge-test-{os.getpid()}"
    groups = [one / name for one in hierarchies()]
    enter = " && ".join(f"echo $$ > {one}/cgroup.procs" for one in groups)
    unshare = "unshare --pid --mount --ipc --uts --cgroup --fork --mount-proc --kill-child"
    program = Program(
        ["bash", "-c", f'{enter} && exec {unshare} bash -c "$BOOT"'],
        folder / "systemd.log",
        env={
            "PATH": os.environ["PATH"],
            "BOOT": BOOT,
            "STAGE": str(stage),
            "BASE": sys.base_prefix,
            "PACKAGES": sysconfig.get_path("purelib"),
            "LIB": _lib(),
            "SYSTEMD": str(SYSTEMD),
        },
    )
    for group in groups:
        group.mkdir()
    try:
        program.start()
        yield Manager(folder)
    finally:
        program.kill()
        for group in groups:
            _remove(group)


def _lib() -> str:
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def _install(stage: Path) -> None:
    """The checkout at its place, and an environment of our interpreter and our packages."""
    checkout = stage / INSTALLED
    for path in tracked_files():
        into = checkout / shown(path)
        into.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, into)
    programs = checkout / ".venv" / "bin"
    programs.mkdir(parents=True)
    (checkout / ".venv" / "lib" / _lib() / "site-packages").mkdir(parents=True)
    (stage / "opt" / "python").mkdir()
    (checkout / ".venv" / "pyvenv.cfg").write_text(f"home = {PYTHON}/bin\n")
    (programs / "python").symlink_to(f"{PYTHON}/bin/{_lib()}")
    (programs / "celery").write_text(CELERY)
    (programs / "celery").chmod(0o755)


def _write_etc(etc: Path, env: Mapping[str, str]) -> None:
    """The machine's own `/etc`, with the user, the settings and the units that the how-to installs."""
    shutil.copytree("/etc", etc, symlinks=True, ignore=shutil.ignore_patterns("systemd", "ssl"))
    with (etc / "passwd").open("a") as passwd, (etc / "group").open("a") as group:
        passwd.write(f"clawbridge:x:{UID}:{UID}::/var/lib/clawbridge:/usr/sbin/nologin\n")
        group.write(f"clawbridge:x:{UID}:\n")
    settings = etc / "clawbridge" / "env"
    settings.parent.mkdir()
    settings.write_text("".join(f"{name}={value}\n" for name, value in env.items()))
    shutil.copytree(DEPLOY / "systemd", etc / "systemd" / "system")


def _add_override(units: Path, unit: str, lines: str) -> None:
    folder = units / f"{unit}.d"
    folder.mkdir()
    libraries = f"Environment=LD_LIBRARY_PATH={PYTHON}/lib"
    (folder / "test.conf").write_text(f"[Service]\nStandardError=inherit\n{libraries}\n{lines}")


def _remove(group: Path) -> None:
    for folder, _, _ in os.walk(group, topdown=False):
        until(
            lambda folder=folder: not (Path(folder) / "cgroup.procs").read_text(),
            f"{folder} to be empty",
            within_s=10,
        )
        os.rmdir(folder)
