"""`python -m lab.in_django MODULE:FUNCTION [VALUE …]`: call a function with Django set up; print its result.

The environment is that of a hub, so that the function works on the hub's database. Values and result are JSON.
"""

import json
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import django

from lab.hub_storage import hub_env
from lab.processes import python, run


def command(function: str, *values: object) -> list[str]:
    """The command line that calls a function, named `module:function`."""
    return python("-m", "lab.in_django", function, *map(json.dumps, values))


def call(env: Mapping[str, str], function: str, *values: object) -> Any:
    """The result of a function in a process of its own. `env`: the environment of a hub."""
    return json.loads(run(command(function, *values), hub_env(env)))


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hub.settings")
    django.setup()
    module, _, name = sys.argv[1].partition(":")
    result = getattr(import_module(module), name)(*map(json.loads, sys.argv[2:]))
    sys.stdout.write(json.dumps(result))
