"""The jobs of the embedded hub: the same functions Celery runs, in a thread of the one process."""

import logging
import threading
import time

from django.conf import settings
from django.db import connection

from agents import jobs

logger = logging.getLogger(__name__)

REAP_EVERY_S = 5.0
RETAIN_EVERY_S = 3600.0


class JobThread:
    """Runs the reaper every 5 s and retention every hour until stopped."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the job at hand."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def _run(self) -> None:
        retain_at = time.monotonic() + REAP_EVERY_S
        while not self._stopped.wait(REAP_EVERY_S):
            try:
                jobs.reap()
                if time.monotonic() >= retain_at:
                    retain_at = time.monotonic() + RETAIN_EVERY_S
                    jobs.retain(settings.TURNS_KEPT_DAYS)
                    jobs.expire_files()
            except Exception:
                logger.exception("job.failed")
                connection.close()
        connection.close()
