"""`python -m lab.bench.start`: the cost of starting an embedded hub, and of the hub while it is idle."""

import argparse
import os
import resource
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab import ROOT
from lab.bench.report import goal, table
from lab.bench.targets import SERVE, agents, environment, process, seed, temporary_folder
from lab.hub_storage import hub_env
from lab.processes import Program, python

MINT = ("manage.py", "mint_token", "--login", "owner", "--kind", "session")
SHOWS_IMPORTS = ("-X", "importtime")
IMPORT = "import time:"
AGENTS = 100
SETTLE_S = 5.0
IDLE_S = 30.0


@dataclass(frozen=True)
class Figures:
    """The measurements. Shares are per cent of one core; `ready_s` is wall-clock time, the rest processor time."""

    mint_modules: int
    mint_cpu_s: float
    hub_modules: int
    hub_mib: float
    idle_share: float
    agents_share: float
    ready_s: float


def mint_imports(env: Mapping[str, str]) -> list[str]:
    """The modules that `mint_token` imports. `env`: the environment of an embedded hub with tables."""
    return _imports_in(_mint(env, *SHOWS_IMPORTS))


def hub_imports(folder: Path) -> list[str]:
    """The modules that a hub in a new data folder has imported when it is ready. This makes the folder."""
    with fresh_hub(folder, *SHOWS_IMPORTS) as server:
        return _imports_in(server.output)


@contextmanager
def fresh_hub(folder: Path, *options: str, **settings: str) -> Iterator[Program]:
    """An embedded hub in a new data folder below this one. `options`: of Python."""
    folder.mkdir(mode=0o755)
    with process("hub", folder, environment(folder) | settings, command=(*options, *SERVE)) as server:
        yield server


def measure(folder: Path, idle_s: float) -> Figures:
    """Measure all figures, with hubs in new folders below this one."""
    env = environment(folder)
    with process("idle", folder, env) as server:
        time.sleep(SETTLE_S)
        hub_mib, idle_share = server.rss_kib() / 1024, _cpu_share(server, idle_s)
        newcomer = {"channel_token": seed(env, 1)[0]["channel_token"], "session_id": ""}
        with agents(int(env["PORT"]), [newcomer] * AGENTS, folder / "agents.log"):
            time.sleep(SETTLE_S)
            agents_share = _cpu_share(server, idle_s)
    began_s = time.monotonic()
    with fresh_hub(folder / "demo", DEMO="1", DEV_LOGIN="1"):  # as `make run` starts it
        ready_s = time.monotonic() - began_s
    return Figures(
        len(mint_imports(env)),
        _mint_cpu_s(env),
        len(hub_imports(folder / "new")),
        hub_mib,
        idle_share,
        agents_share,
        ready_s,
    )


def text(found: Figures) -> str:
    """The figures as a table."""
    rows = [
        goal("mint_token: imported modules", "under", 1200, found.mint_modules),
        goal("mint_token: processor time, s", "under", 0.8, found.mint_cpu_s),
        goal("fresh hub: imported modules", "under", 1500, found.hub_modules),
        goal("fresh hub: resident memory, MiB", "under", 110, found.hub_mib),
        goal("idle hub, no agents: processor time, %", "under", 0.3, found.idle_share),
        goal(f"idle hub, {AGENTS} agents: processor time, %", "under", 0.8, found.agents_share),
        goal("`make run` in a new data folder: until ready, s", "under", 3, found.ready_s),
    ]
    return table(["embedded hub", "wanted", "measured", ""], rows)


def _mint(env: Mapping[str, str], *options: str) -> str:
    """Run `mint_token`; its standard error."""
    command = python(*options, *MINT)
    return subprocess.run(command, env=hub_env(env), cwd=ROOT, capture_output=True, text=True, check=True).stderr


def _mint_cpu_s(env: Mapping[str, str]) -> float:
    before = _children_cpu_s()
    _mint(env)
    return _children_cpu_s() - before


def _children_cpu_s() -> float:
    """The processor time of child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cpu_share(server: Program, for_s: float) -> float:
    before = server.cpu_s()
    time.sleep(for_s)
    return (server.cpu_s() - before) / for_s * 100


def _imports_in(output: str) -> list[str]:
    lines = [line for line in output.splitlines() if line.startswith(IMPORT)]
    return [line.rpartition("|")[2].strip() for line in lines[1:]]  # the first line is a head


def main() -> None:
    """Start embedded hubs and leave one idle; print a table and the goals."""
    parser = argparse.ArgumentParser(prog="python -m lab.bench.start", description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=IDLE_S, help=f"of idleness (default {IDLE_S:g})")
    idle_s = parser.parse_args().seconds
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with temporary_folder() as folder:
        print(text(measure(folder, idle_s)))


if __name__ == "__main__":
    main()
