"""What a program inside a unit's sandbox tries, as JSON: each attempt by its name, and whether it succeeded.

Needs Python alone. `python sandbox_probe.py DATA_DIR`.
"""

import ctypes
import json
import mmap
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

DATA = Path(sys.argv[1])
NEW_NAMESPACES = {"mount": 0x00020000, "user": 0x10000000, "network": 0x40000000, "process": 0x20000000}
READ_ONLY = [
    "/",
    "/opt/clawbridge",
    "/opt/clawbridge/hub",
    "/etc",
    "/etc/clawbridge",
    "/usr/local/bin",
    "/usr/lib",
]
READ_ONLY += [
    "/var/lib",
    "/var/log",
    "/run",
    "/home",
    "/root",
    "/boot",
    "/sys/fs/cgroup",
    "/proc/sys/kernel",
    "/dev",
]
libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> None:
    """Call a function of the C library.

    Raises:
        OSError: it failed.
    """
    if getattr(libc, name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), name)


def read_all(path: str) -> None:
    Path(path).read_bytes()


def list_folder(path: str) -> None:
    if not os.listdir(path):
        raise OSError(f"{path} is empty")


def create_in(folder: str) -> None:
    Path(folder, "made-by-a-probe").write_text("x")


def set_flag(bits: int) -> None:
    path = DATA / "flagged"
    path.write_text("x")
    path.chmod(0o700 | bits)


def run_as_root() -> None:
    os.setuid(0)


def execute_written_memory() -> None:
    mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)


def make_memory_executable() -> None:
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    call("mprotect", ctypes.c_void_p(address), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC)


def see_first_process() -> None:
    if not Path("/proc/1").exists():
        raise OSError("/proc/1 is not shown")


def see_disks() -> None:
    if not any(path.is_block_device() for path in Path("/dev").iterdir()):
        raise OSError("no disk is shown")


def see_others_files() -> None:
    if not any(path.name == "of-another-program" for path in Path("/var/tmp").iterdir()):
        raise OSError("/var/tmp is our own")


def have_capabilities() -> None:
    lines = dict(line.split(":\t") for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    if not any(int(lines[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")):
        raise OSError("no capabilities")


def gain_rights_by_a_program() -> None:
    if "NoNewPrivs:\t1" in Path("/proc/self/status").read_text():
        raise OSError("no new privileges")


def leave_readable_files() -> None:
    path = DATA / "readable"
    path.write_text("x")
    if not path.stat().st_mode & 0o077:
        raise OSError("files are for their owner")


def make_socket(family: int, kind: int) -> None:
    socket.socket(family, kind).close()


def attempts() -> dict[str, Callable[[], object]]:
    """Each attempt by its name."""
    found: dict[str, Callable[[], object]] = {
        f"create a file in {path}": lambda path=path: create_in(path) for path in READ_ONLY
    }
    found |= {
        f"make a {name} namespace": lambda flag=flag: call("unshare", flag)
        for name, flag in NEW_NAMESPACES.items()
    }
    return found | {
        "read /etc/shadow": lambda: read_all("/etc/shadow"),
        "list /root": lambda: list_folder("/root"),
        "list /home": lambda: list_folder("/home"),
        "read the environment of the first process": lambda: read_all("/proc/1/environ"),
        "see the first process": see_first_process,
        "signal the first process": lambda: os.kill(1, signal.SIGCONT),
        "trace the first process": lambda: call("ptrace", 16, 1, 0, 0),
        "run as root": run_as_root,
        "give a file to root": lambda: os.chown(DATA, 0, 0),
        "have capabilities": have_capabilities,
        "gain rights by a program": gain_rights_by_a_program,
        "set the set-user-ID bit": lambda: set_flag(0o4000),
        "set the set-group-ID bit": lambda: set_flag(0o2000),
        "leave files that others read": leave_readable_files,
        "open a raw socket": lambda: make_socket(socket.AF_INET, socket.SOCK_RAW),
        "open a packet socket": lambda: make_socket(socket.AF_PACKET, socket.SOCK_RAW),
        "open a netlink socket": lambda: make_socket(socket.AF_NETLINK, socket.SOCK_RAW),
        "open a socket of a virtual machine": lambda: make_socket(socket.AF_VSOCK, socket.SOCK_STREAM),
        "make a device": lambda: os.mknod(DATA / "device", 0o600 | 0o060000, os.makedev(8, 0)),
        "see disks": see_disks,
        "open the memory of the machine": lambda: read_all("/dev/mem"),
        "read the log of the kernel": lambda: read_all("/dev/kmsg"),
        "see files of others in /var/tmp": see_others_files,
        "map memory that is written and executed": execute_written_memory,
        "make written memory executable": make_memory_executable,
        "mount a file system": lambda: call("mount", b"none", bytes(DATA), b"tmpfs", 0, None),
        "unmount a file system": lambda: call("umount2", b"/tmp", 2),
        "change the root folder": lambda: os.chroot(DATA),
        "change the name of the host": lambda: socket.sethostname("probe"),
        "set the clock": lambda: call("clock_settime", 0, (ctypes.c_long * 2)(0, 0)),
        "swap memory to a file": lambda: call("swapon", b"/nonexistent", 0),
        "run with priority": lambda: os.setpriority(os.PRIO_PROCESS, 0, -5),
        "run in real time": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
        "choose processors": lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)),
        "change the personality": lambda: call("personality", 0x0040000),
    }


def needs() -> dict[str, Callable[[], object]]:
    """What a hub does, which the sandbox must allow."""
    return {
        "write in the data folder": lambda: (DATA / "own").write_text("x"),
        "write in /tmp": lambda: Path("/tmp/own").write_text("x"),
        "read the code": lambda: read_all("/opt/clawbridge/manage.py"),
        "listen on a port": lambda: socket.create_server(("127.0.0.1", 0)).close(),
        "listen on a Unix socket": lambda: make_socket(socket.AF_UNIX, socket.SOCK_STREAM),
        "let a thread go behind others": lambda: os.setpriority(os.PRIO_PROCESS, 0, 10),
        "start a program": lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0),
    }


def succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


def main() -> None:
    tried = {name: succeeds(attempt) for name, attempt in {**needs(), **attempts()}.items()}
    sys.stdout.write(json.dumps({"needs": {name: tried.pop(name) for name in needs()}, "attempts": tried}) + "\n")


if __name__ == "__main__":
    main()
