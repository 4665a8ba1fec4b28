"""`manage.py serve` without the second that its libraries take to import.

A server process imports the libraries once and forks for each hub. A hub then runs `manage.py` as its operator
does: with an environment, a process group and an output of its own, and every module of ours read anew.
`tests/deploy/test_run_stack.py` starts its hubs by their command line.
"""

import gc
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path

# None of them reads settings or makes an event loop when it is imported.
LIBRARIES = [
    "OpenSSL.SSL", "authlib.integrations.base_client", "autobahn.websocket.protocol", "celery.app.base",
    "celery.result", "cryptography.x509", "django.contrib.postgres.fields", "django.core.management",
    "django.core.serializers", "django.db.backends.sqlite3.base", "django.db.models", "django.forms",
    "django.http",
    "django.template.loader", "django.urls", "django.views.generic", "httpx", "httpx2", "jinja2", "joserfc.jwk",
    "kombu", "limits", "markdown_it", "msgspec", "nh3", "opentelemetry.trace", "psutil", "psycopg", "psycopg_pool",
    "pycparser.c_parser", "pygal", "pygments", "redis.asyncio", "requests", "sqlparse", "twisted.internet.tcp",
    "twisted.web.http", "uvicorn", "uvloop", "webauthn", "websockets.asyncio.client", "whitenoise.base", "yaml",
]  # fmt: skip
LOOKS_AGAIN_S = 0.02

_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(LIBRARIES)


class ForkedProcess:
    """A started program, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, arguments: list[str], env: Mapping[str, str], folder: Path, log: Path) -> None:
        self._arguments = arguments
        self._process: ForkServerProcess = _server.Process(
            target=_run, args=(arguments, dict(env), str(folder), str(log)), daemon=True
        )
        self._one_looks = threading.Lock()
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        with self._one_looks:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises subprocess.TimeoutExpired when it runs for longer than that, in seconds."""
        began = time.monotonic()
        while (code := self.poll()) is None:
            if timeout is not None and time.monotonic() - began > timeout:
                raise subprocess.TimeoutExpired(self._arguments, timeout)
            time.sleep(LOOKS_AGAIN_S)
        return code

    def send_signal(self, number: int) -> None:
        """Nothing when it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it ended, and its parent has not said so yet
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(arguments: list[str], env: dict[str, str], folder: str, log: str) -> None:
    """In the new process: become the program."""
    gc.freeze()  # the libraries are no garbage: the hub need not look through them
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(output, sys.stdout.fileno())
    os.dup2(output, sys.stderr.fileno())
    os.close(output)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    sys.path[0] = folder
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")
