#!/usr/bin/env python
"""The hub's command line: `manage.py help` lists what it can do."""

import os
import sys
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

from hub.data_dir import check_hub_exists

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hub.settings")
    try:
        check_hub_exists(sys.argv[1:], Path(__file__).resolve().parent)
        settings.INSTALLED_APPS  # noqa: B018  loads them: a bad one stops here, with one sentence
    except ImproperlyConfigured as wrong:
        sys.exit(str(wrong))
    execute_from_command_line(sys.argv)
