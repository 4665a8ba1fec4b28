"""`python -m lab.prototype CHECKOUT`: runs the prototype's own client, unmodified, and compares its frames.

CHECKOUT is a checkout of the repository with `agents/lib/agent-client.js` and `gateway/openclaw-gateway.js`, and
with the packages that they need (docs/howto/test.md). With `--record` the client runs against its own gateway
first; this writes the record that `tests/gateway/test_prototype_clients.py` replays. Then the client runs
against a hub, and each difference is printed.
"""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import ROOT
from lab.hub_process import HubProcess
from lab.hub_storage import storages
from lab.processes import Program, free_port, printed, run
from lab.prototype.compare import find_differences
from lab.prototype.proxy import RecordingProxy
from lab.prototype.record import RECORD, Normaliser, Step, read_steps, write_steps
from lab.servers import Redis

SCENARIO = Path(__file__).parent / "scenario.cjs"
QUIET_S = 0.3
QUIET_ON_HUB_S = 0.7
REPOSITORY = "https://github.com/Heretek-AI/heretek-openclaw-core"


def main() -> int:
    """Record, then compare; returns 1 if there is an unintended difference."""
    options = _options()
    checkout: Path = options.checkout
    with tempfile.TemporaryDirectory(prefix="prototype-") as name:
        folder = Path(name)
        if options.record:
            with _own_gateway(checkout, folder) as url:
                steps = asyncio.run(_run_client(checkout, url, "", QUIET_S))
            commit = run(["git", "-C", str(checkout), "rev-parse", "HEAD"], os.environ).strip()
            write_steps(steps, f"{REPOSITORY}/tree/{commit}")
        with (
            storages(folder, is_distributed=False) as new_storage,
            HubProcess.start(new_storage(), GATEWAY_PROTOTYPE=1) as hub,
        ):
            query = f"token={hub.mint('prototype', 'channel')}"
            shown = asyncio.run(_run_client(checkout, hub.url.replace("http", "ws", 1), query, QUIET_ON_HUB_S))
    differences = find_differences(read_steps(), shown)
    for one in differences:
        print(f"{one.text}{f' ({one.accepted.why})' if one.accepted else ''}")
    return int(any(one.accepted is None for one in differences))


@contextmanager
def _own_gateway(checkout: Path, folder: Path) -> Iterator[str]:
    """Run the gateway of the checkout with a Redis of its own; yields the gateway's address."""
    port, redis = free_port(), Redis(folder)
    env = {"PATH": os.environ["PATH"], "REDIS_URL": redis.url(), "GATEWAY_PORT": str(port)}
    gateway = Program(
        ["node", (checkout / "gateway" / "openclaw-gateway.js").resolve()],
        folder / "gateway.log",
        env=env | {"GATEWAY_HOST": "127.0.0.1"},
        is_ready=printed("Press Ctrl+C to stop"),
        stop_signal=signal.SIGKILL,
    )
    with redis.program, gateway:
        yield f"ws://127.0.0.1:{port}"


async def _run_client(checkout: Path, gateway: str, query: str, quiet_s: float) -> list[Step]:
    """Run the scenario; the steps of its clients and the gateway."""
    proxy = RecordingProxy(gateway, query, quiet_s)
    async with proxy.running() as url:
        command = ["node", str(SCENARIO), str(checkout), url]
        await asyncio.to_thread(run, command, os.environ)
    normaliser = Normaliser()
    return [normaliser.fix_step(step) for step in proxy.steps]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.prototype", description="See docs/howto/test.md.")
    parser.add_argument("checkout", type=Path, help="a checkout of the client and its gateway")
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.relative_to(ROOT)} first")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
