"""Starts programs of the hub without the second that the import of their libraries takes.

A server process imports the libraries once and forks for each program. The fork runs `manage.py`, or `-m` and a
module, as an operator's command line does: with an environment, a process group and an output of its own, and the
modules of the project read anew. `tests/deploy/test_run_stack.py` starts its hubs by their command line.
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
from tempfile import TemporaryDirectory

from lab import ROOT

# None of them reads settings or makes an event loop when it is imported.
LIBRARIES = [
    "OpenSSL.SSL", "anyio.streams.tls", "authlib.integrations.base_client", "autobahn.wamp.websocket",
    "autobahn.websocket.protocol", "celery.app.base", "celery.apps.beat", "celery.apps.worker",
    "celery.bin.celery", "celery.concurrency.prefork", "celery.fixups.django", "celery.loaders.app",
    "celery.result", "channels.db", "channels.generic.websocket", "cryptography.fernet", "cryptography.x509",
    "django.contrib.admin", "django.contrib.auth.apps", "django.contrib.auth.hashers",
    "django.contrib.auth.password_validation", "django.contrib.auth.validators",
    "django.contrib.messages.middleware", "django.contrib.postgres.fields",
    "django.contrib.sessions.backends.base", "django.contrib.sessions.backends.signed_cookies",
    "django.contrib.sessions.middleware", "django.contrib.staticfiles.apps", "django.core.asgi",
    "django.core.handlers.asgi", "django.core.management", "django.core.serializers",
    "django.db.backends.postgresql.base", "django.db.backends.sqlite3.base", "django.db.migrations.executor",
    "django.db.models", "django.forms", "django.http", "django.middleware.clickjacking",
    "django.middleware.common", "django.middleware.csrf", "django.middleware.security",
    "django.template.defaulttags", "django.template.loader", "django.template.loader_tags", "django.urls",
    "django.views.debug", "django.views.generic", "h11", "httpcore2", "httpx", "httpx2", "inflection", "jinja2",
    "joserfc.jwk", "kombu", "limits", "markdown_it", "msgspec", "nh3", "opentelemetry.trace",
    "prometheus_client", "prometheus_client.core", "psutil", "psycopg", "psycopg_pool", "pycparser.c_parser",
    "pygments.formatters.html", "pygments.lexers.special", "redis.asyncio", "requests",
    "rest_framework.serializers", "rfc8785", "service_identity", "sqlparse", "standardwebhooks",
    "twisted.application.service", "twisted.internet.asyncioreactor", "twisted.internet.endpoints",
    "twisted.internet.ssl", "twisted.internet.tcp", "twisted.persisted.sob", "twisted.web.http", "txaio.tx",
    "uritemplate", "uvicorn", "uvloop", "webauthn", "websockets.asyncio.client", "whitenoise.middleware",
    "wsgiref.simple_server", "yaml",
]  # fmt: skip
LOOKS_AGAIN_S = 0.02

_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(LIBRARIES)


class ForkedProcess:
    """A started program, with the methods of `subprocess.Popen` that tests use."""

    def __init__(
        self, arguments: list[str], env: Mapping[str, str], folder: Path, log: Path, errors: Path | None = None
    ) -> None:
        """`errors`: where its standard error goes, by default to the log too."""
        self._arguments = arguments
        self._process: ForkServerProcess = _server.Process(
            target=_run, args=(arguments, dict(env), str(folder), str(log), str(errors or log)), daemon=True
        )
        self._one_looks = threading.Lock()
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while the program runs."""
        with self._one_looks:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises subprocess.TimeoutExpired if the program runs for longer, in seconds."""
        began = time.monotonic()
        while (code := self.poll()) is None:
            if timeout is not None and time.monotonic() - began > timeout:
                raise subprocess.TimeoutExpired(self._arguments, timeout)
            time.sleep(LOOKS_AGAIN_S)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal; do nothing when the program has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it ended, and its parent has not said so yet
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run_forked(
    arguments: list[str], env: Mapping[str, str], *, folder: Path, within_s: float
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; it has no input.

    Raises:
        subprocess.TimeoutExpired: it took longer, and was killed.
    """
    with TemporaryDirectory() as place:
        output, errors = Path(place, "output"), Path(place, "errors")
        process = ForkedProcess(arguments, env, folder, output, errors)
        try:
            code = process.wait(within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return subprocess.CompletedProcess(arguments, code, output.read_text(), errors.read_text())


def _run(arguments: list[str], env: dict[str, str], folder: str, log: str, errors: str) -> None:
    """In the new process: become the program."""
    gc.freeze()  # the libraries are no garbage: the hub need not look through them
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal; background jobs ignore it
    for path, stream in ((log, sys.stdout), (errors, sys.stderr)):
        output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(output, stream.fileno())
        os.close(output)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    sys.path[:] = [folder, *(path for path in sys.path if path not in ("", str(ROOT)))]
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")
