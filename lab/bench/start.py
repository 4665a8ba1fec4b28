"""`python -m lab.bench.start`: the cost of starting an embedded hub, and of the hub while it is idle."""

import os
import resource
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab import ROOT
from lab.bench import command, hubs
from lab.bench.command import Options, bench
from lab.figures import BenchResult
from lab.hub_storage import embedded_storage, hub_env
from lab.processes import Program, python

MINT = ("manage.py", "mint_token", "--login", "owner", "--kind", "session")
SHOWS_IMPORTS = ("-X", "importtime")
IMPORT = "import time:"
AGENTS = 100
SETTLE_S = 5.0


def mint_imports(env: Mapping[str, str]) -> list[str]:
    """The modules that `mint_token` imports. `env`: the environment of an embedded hub with tables."""
    return _imports_in(_mint(env, *SHOWS_IMPORTS))


def hub_imports(folder: Path) -> list[str]:
    """The modules that a hub in a new data folder has imported when it is ready. The function makes the folder."""
    with _fresh_hub(folder, *SHOWS_IMPORTS) as server:
        return _imports_in(server.output)


@contextmanager
def _fresh_hub(folder: Path, *options: str, **settings: Any) -> Iterator[Program]:
    """An embedded hub in a new data folder below this one. `options`: of Python."""
    folder.mkdir(mode=0o755)
    served = python(*options, "manage.py", "serve")
    with hubs.running(embedded_storage(folder / "data"), command=served, **settings) as hub:
        yield hub.web[0]


def measure(options: Options, folder: Path) -> BenchResult:
    """Start embedded hubs, and leave one of them idle."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with hubs.storages("embedded", folder) as new_storage:
        storage = new_storage()
        (owner,) = hubs.seed(storage, 1)
        with hubs.running(storage, [owner], online=0) as hub:
            server, target = hub.web[0], hub.asked()[0]
            time.sleep(SETTLE_S)
            hub_mib, idle_share = server.rss_kib() / 1024, _cpu_share(server, options.seconds)
            with hubs.idle_agents(target, [target.channel_token] * AGENTS, folder):
                time.sleep(SETTLE_S)
                agents_share = _cpu_share(server, options.seconds)
    began_s = time.monotonic()
    with _fresh_hub(folder / "demo", DEMO="1", DEV_LOGIN="1"):  # as `make run` starts it
        ready_s = time.monotonic() - began_s
    result = BenchResult("start", "Starts and idleness of an embedded hub")
    result.goal("mint_token: imported modules", "under", 1200, len(mint_imports(storage.env)))
    result.goal("mint_token: processor time, s", "under", 0.8, _mint_cpu_s(storage.env))
    result.goal("fresh hub: imported modules", "under", 1500, len(hub_imports(folder / "new")))
    result.goal("fresh hub: resident memory, MiB", "under", 110, hub_mib)
    result.goal("idle hub, no agents: processor time, %", "under", 0.3, idle_share)
    result.goal(f"idle hub, {AGENTS} agents: processor time, %", "under", 0.8, agents_share)
    result.goal("`make run` in a new data folder: until ready, s", "under", 3, ready_s)
    return result


def _mint(env: Mapping[str, str], *options: str) -> str:
    """Run `mint_token`; its standard error."""
    minting = python(*options, *MINT)
    return subprocess.run(minting, env=hub_env(env), cwd=ROOT, capture_output=True, text=True, check=True).stderr


def _mint_cpu_s(env: Mapping[str, str]) -> float:
    before = _children_cpu_s()
    _mint(env)
    return _children_cpu_s() - before


def _children_cpu_s() -> float:
    """The processor time of child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cpu_share(server: Program, for_s: float) -> float:
    """Per cent of one core."""
    before = server.cpu_s()
    time.sleep(for_s)
    return (server.cpu_s() - before) / for_s * 100


def _imports_in(output: str) -> list[str]:
    lines = [line for line in output.splitlines() if line.startswith(IMPORT)]
    return [line.rpartition("|")[2].strip() for line in lines[1:]]  # the first line is a head


if __name__ == "__main__":
    bench("start", measure, command.seconds(30.0, "length of the idleness"))
