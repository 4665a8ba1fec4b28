"""Keeps tests that run inside pytest's own process away from the developer's data.

A plugin (`-p tests.isolation`), because pytest-django reads the settings before it loads any conftest.
"""

import atexit
import os
import shutil
import tempfile

_homes = () if os.environ.get("KEEP_HOME") else ("DATABASE_URL", "REDIS_URL")
_switches = ("DEMO", "DEV_LOGIN", "GITHUB_CLIENT_ID", "AGNT", "A2A_SIGNING_KEY", "STRIPE_API_KEY")
for name in (*_homes, "PUBLIC_URL", "HOST", "PORT", *_switches):
    os.environ.pop(name, None)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each program that a test starts would compile all modules again
_folder = tempfile.mkdtemp(prefix="hub-tests-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
os.environ["DATA_DIR"] = _folder
os.environ["GATEWAY"] = "1"  # the routes of every part are there, as in the hubs of lab/hub_process.py
