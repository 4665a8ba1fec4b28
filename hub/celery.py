"""The Celery application of a hub with several processes: `celery -A hub worker -B`."""

import logging
import os
from logging.config import dictConfig
from typing import Any

from celery import Celery
from celery.signals import import_modules, setup_logging
from django.conf import settings
from django.utils.module_loading import autodiscover_modules

from kit.jobs import JOBS

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hub.settings")

OF_EACH_JOB = ("celery.worker.strategy", "celery.app.trace")  # two lines a job at INFO, a job each second

app = Celery("hub")
app.config_from_object("django.conf:settings", namespace="CELERY")


@import_modules.connect(sender=app)
def register_jobs(**_: Any) -> None:
    """Make Celery tasks of the jobs of all apps. Celery has already set up Django."""
    autodiscover_modules("jobs")
    for name, function in JOBS.items():
        app.task(name=name, ignore_result=True)(function)


@setup_logging.connect
def log_as_the_hub(loglevel: int | None = None, **_: Any) -> None:
    """Make worker and beat log as web processes do (hub/logs.py); `-l` is the level of Celery's own lines.

    Lines of each job, with its arguments, come at DEBUG alone.
    """
    dictConfig(settings.LOGGING)
    level = loglevel or logging.WARNING
    logging.getLogger("celery").setLevel(level)
    for name in OF_EACH_JOB:
        logging.getLogger(name).setLevel(level if level <= logging.DEBUG else max(level, logging.WARNING))
