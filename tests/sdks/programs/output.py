"""Prints the observations of a client's program on standard output, in the client's environment, on its own."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import redirect_stdout
from typing import Any

STATES = ["completed", "failed", "canceled", "rejected"]
ENDED = {*STATES, *(f"TASK_STATE_{state.upper()}" for state in STATES)}


def say(step: str, value: object) -> None:
    """One line, `{"step": what was done, "value": what came, as JSON}`."""
    print(json.dumps({"step": step, "value": value}), file=sys.__stdout__, flush=True)


def say_raised(failure: Exception) -> None:
    """The step `raised`: the exception's class and words, and the code if the SDK kept one."""
    error = getattr(failure, "error", None)
    code = getattr(error, "code", None) or getattr(failure, "status_code", None)
    say("raised", {"type": type(failure).__name__, "message": str(failure), "code": code})


async def attempt(work: Awaitable[object]) -> None:
    """Await what should be refused, and say what the SDK raises."""
    try:
        await work
    except Exception as failure:  # noqa: BLE001 - whatever it raises is what we want to see
        say_raised(failure)
    else:
        say("not raised", None)


Scenarios = Callable[[str, str, dict[str, Any]], Any]


def serve(scenarios: Scenarios) -> None:
    """Run each scenario that is asked for, in a process forked for it: the SDK takes a second to import.

    Standard input is a socket. A request is the JSON list of a scenario's arguments, with two descriptors for what
    it prints; the answer is the number of its process.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no child is waited for
    with socket.socket(fileno=0) as asked:
        while (request := socket.recv_fds(asked, 65_536, 2))[0]:
            arguments, descriptors, *_ = request
            if not (pid := os.fork()):
                for descriptor, standard in zip(descriptors, (1, 2), strict=True):
                    os.dup2(descriptor, standard)
                    os.close(descriptor)
                asked.close()
                break
            for descriptor in descriptors:
                os.close(descriptor)
            asked.send(str(pid).encode())
        else:
            return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    run(scenarios, json.loads(arguments))
    sys.stdout.flush()


def run(scenarios: Scenarios, arguments: list[str]) -> None:
    """Run one scenario: URL, TOKEN, its name, OPTIONS. An error is an observation, too; the last line is `end`.

    Output of the client itself goes to standard error.
    """
    url, token, name, options = arguments
    with redirect_stdout(sys.stderr):
        work = getattr(scenarios(url, token, json.loads(options)), name)
        try:
            asyncio.run(work())
        except Exception as failure:  # noqa: BLE001 - the test reads it
            say_raised(failure)
    say("end", None)
