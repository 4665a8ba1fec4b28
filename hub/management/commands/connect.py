"""`manage.py connect`: make any program an agent (the `connect` package, from the hub's own checkout)."""

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from clawbridge.connect.__main__ import run
from clawbridge.connect.options import add_arguments
from hub.management.command import HubCommand


class Command(HubCommand):
    help = "Make a program an agent of a hub; the same as `python -m clawbridge.connect`."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of `python -m clawbridge.connect`."""
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until told to stop."""
        del args
        sys.exit(run(Namespace(**options)))
