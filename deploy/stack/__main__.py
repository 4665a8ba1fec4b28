"""Starts, watches and ends the stack. Ctrl-C drains the stack; a second Ctrl-C kills its programs at once."""

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

from deploy.stack.shape import Stack, tell
from deploy.stack.supervision import Supervisor
from lab import ROOT
from lab.processes import ProgramError

LOOK_EVERY_S = 0.25
DEFAULTS = {"DEV_LOGIN": "1", "DEMO": "1", "GATEWAY": "1"}


def main() -> int:
    """The exit code: 0 after an ordinary end, 1 if a program could not start or failed too often."""
    # Shells start background programs with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _as_interrupt)
    stack = _stack()
    try:
        return run(stack)
    finally:
        end(stack)


def run(stack: Stack) -> int:
    """Start the stack and watch it until Ctrl-C, SIGTERM, or a program that fails too often; returns the exit
    code.
    """
    try:
        stack.start()
        tell(f"ready {stack.env['PUBLIC_URL']}\n{stack.demo_lines()}\n")
        tell(f"its commands: {stack.command_line()}")
        tell(f"logs: {stack.folder / 'logs'}; Ctrl-C ends everything")
        watch(stack)
    except KeyboardInterrupt:
        tell("\nending: open questions may finish, press Ctrl-C again to leave at once")
        return 0
    except ProgramError as failure:
        tell(str(failure))
        return 1


def end(stack: Stack) -> None:
    """Stop the stack; at a further Ctrl-C or SIGTERM kill its programs."""
    try:
        stack.stop()
    except KeyboardInterrupt:
        stack.kill()


def watch(stack: Stack) -> NoReturn:
    """Start each program again that ends by itself.

    Raises:
        ProgramError: a program ends again and again.
    """
    supervisor = Supervisor(stack.servers, [*stack.jobs, *stack.webs, *stack.front], tell=tell)
    while True:
        time.sleep(LOOK_EVERY_S)
        if stack.webs[0] in supervisor.look():  # the demo agent runs in this process, and has a new token
            tell(stack.demo_lines())


def _stack() -> Stack:
    data = Path(os.environ.get("DATA_DIR") or ROOT / "data").resolve()
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    env = {**DEFAULTS, **os.environ, "DATA_DIR": str(data)}
    port = int(os.environ.get("PORT") or 8787)
    return Stack(folder=data / "stack", env=env, host=os.environ.get("HOST") or "127.0.0.1", port=port)


def _as_interrupt(sig: int, frame: FrameType | None) -> None:
    del sig, frame
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
