"""The official SDKs and the agent frameworks, each in an environment of its own, kept beside the tests' own.

An environment is made once, and again when its lock changes. `python -m tests.sdks.environments` makes all and
says what it leaves out: a framework that cannot be installed, and what this machine cannot run.
`SDK_ENVIRONMENTS` names another folder for them.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

REQUIREMENTS = Path(__file__).parents[2] / "requirements"
ROOM = Path(os.environ.get("SDK_ENVIRONMENTS") or Path(sys.prefix).resolve() / "sdks")
INSTALL_WITHIN_S = 300
NODE_AT_LEAST = {
    "js-1": 20,
    "js-0.3": 18,
    "js-mcp": 18,
    "js-mcp-clients": 20,
    "js-openai": 20,
    "js-gateway": 18,
    "js-conformance": 20,
    "js-coding-agents": 20,
}


class Missing(Exception):
    """This machine lacks what the client runs on; its text says what."""


class NotInstalled(Exception):
    """The registry or the installer failed; its text says which and how."""


@dataclass(frozen=True)
class Environment:
    """One SDK or set of programs, by its name in `ENVIRONMENTS`, or one framework (`FRAMEWORKS`)."""

    name: str
    lock: Path
    build: Callable[[Path, Path], None]

    @property
    def folder(self) -> Path:
        made_from = self.lock.read_bytes() + sys.version.encode()
        return ROOM / f"{self.name}-{hashlib.sha256(made_from).hexdigest()[:12]}"

    def ready(self) -> Path:
        """The folder of the environment, made now if absent; other processes wait meanwhile.

        Raises:
            Missing, NotInstalled: as they say.
        """
        if self.name in NODE_AT_LEAST:
            check_node(NODE_AT_LEAST[self.name])
        folder, finished = self.folder, self.folder / "finished"
        with alone(self.name):
            if not finished.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                self.build(folder, self.lock)
                finished.touch()
        return folder


@contextmanager
def alone(name: str) -> Iterator[None]:
    """One process at a time, on this machine, for each name."""
    ROOM.mkdir(parents=True, exist_ok=True)
    with (ROOM / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def check_node(at_least: int) -> None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise Missing("no node and npm on this machine: the JavaScript clients are not tried")
    version = _version_of(node)
    if int(version.removeprefix("v").partition(".")[0]) < at_least:
        raise Missing(f"node is {version}, this JavaScript client wants {at_least} or later")


@cache
def _version_of(node: str) -> str:
    """The version of a node program, such as `v22.11.0`."""
    return subprocess.run([node, "--version"], check=True, capture_output=True, text=True).stdout.strip()


def build_python(folder: Path, lock: Path, *options: str) -> None:
    install(sys.executable, "-m", "venv", "--without-pip", str(folder))
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "--disable-pip-version-check"]
    install(*pip, "install", "--quiet", "--require-hashes", *options, "-r", str(lock))


def build_framework(folder: Path, lock: Path) -> None:
    """A lock of a framework names every package, so pip resolves nothing. Python compiles what is imported."""
    build_python(folder, lock, "--no-deps", "--no-compile")


def build_js(folder: Path, lock: Path) -> None:
    for name in ("package.json", lock.name):
        shutil.copy(lock.parent / name, folder)
    install("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)


def build_coding_agents(folder: Path, lock: Path) -> None:
    """No package runs a script, so the program of Claude Code is put in its place by its own installer here."""
    build_js(folder, lock)
    install("node", "node_modules/@anthropic-ai/claude-code/install.cjs", cwd=folder)


def install(*command: str, cwd: Path | None = None) -> None:
    try:
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, timeout=INSTALL_WITHIN_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"no end within {INSTALL_WITHIN_S} s, is the registry reached? {command}") from None
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise NotInstalled(f"could not install an official client ({' '.join(command)}):\n{said}")


ENVIRONMENTS = {
    environment.name: environment
    for environment in (
        Environment("python-1", REQUIREMENTS / "sdk-1.txt", build_python),
        Environment("python-0.3", REQUIREMENTS / "sdk-0.3.txt", build_python),
        Environment("python-openai", REQUIREMENTS / "sdk-openai.txt", build_python),
        Environment("python-mcp", REQUIREMENTS / "sdk-mcp.txt", build_python),
        Environment("js-1", REQUIREMENTS / "sdk-js-1" / "package-lock.json", build_js),
        Environment("js-0.3", REQUIREMENTS / "sdk-js-0.3" / "package-lock.json", build_js),
        Environment("js-mcp", REQUIREMENTS / "sdk-js-mcp" / "package-lock.json", build_js),
        Environment("js-mcp-clients", REQUIREMENTS / "sdk-js-mcp-clients" / "package-lock.json", build_js),
        Environment("js-openai", REQUIREMENTS / "sdk-js-openai" / "package-lock.json", build_js),
        Environment("js-gateway", REQUIREMENTS / "sdk-js-gateway" / "package-lock.json", build_js),
        Environment("js-conformance", REQUIREMENTS / "sdk-js-conformance" / "package-lock.json", build_js),
        Environment(
            "js-coding-agents", REQUIREMENTS / "sdk-js-coding-agents" / "package-lock.json", build_coding_agents
        ),
    )
}

FRAMEWORKS = {
    (name := lock.stem.removeprefix("framework-")): Environment(name, lock, build_framework)
    for lock in sorted(REQUIREMENTS.glob("framework-*.txt"))
}


# Large, or of programs that few use: `make test-deep` installs them. The programs of the presets have 900 MB.
DEEP_ONLY = frozenset(
    {"python-a2a", "python-openai", "python-mcp", "js-mcp-clients", "js-conformance", "js-coding-agents"}
)


def main() -> int:
    """Make two environments at a time: pip takes one core each."""
    often = [one for name, one in (ENVIRONMENTS | FRAMEWORKS).items() if name not in DEEP_ONLY]
    with ThreadPoolExecutor(max_workers=2) as pool:
        return max(pool.map(_make, often))


def _make(environment: Environment) -> int:
    """The exit code: 1 for an official client that cannot be installed."""
    try:
        environment.ready()
    except Missing as missing:
        print(f"leaving out {environment.name}: {missing}")
    except NotInstalled as failure:
        if environment.name not in FRAMEWORKS:
            print(failure, file=sys.stderr)
            return 1
        print(f"leaving out {environment.name}: {failure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
