#!/usr/bin/env python
"""The hub's command line: `manage.py help` lists what it can do."""

import os
import sys

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hub.settings")
    try:
        settings.INSTALLED_APPS  # noqa: B018  loads them: a bad one stops here, with one sentence
    except ImproperlyConfigured as wrong:
        sys.exit(str(wrong))
    execute_from_command_line(sys.argv)
