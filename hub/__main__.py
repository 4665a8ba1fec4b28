"""The hub's command line: `manage.py`, `clawbridge-hub` and `python -m hub`."""

import os
import sys
from collections.abc import Sequence

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

from clawbridge import VERSION
from hub.data_dir import BASE_DIR, check_hub_exists


def main(arguments: Sequence[str], name: str = "manage.py") -> int:
    """Run one command; the answer is the exit code. `name`: how the user calls it."""
    if [*arguments] == ["--version"]:
        sys.stdout.write(f"{VERSION}\n")  # Django would print its own version
        return 0
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hub.settings")
    try:
        check_hub_exists(arguments, BASE_DIR)
        settings.INSTALLED_APPS  # noqa: B018  loads them: a bad one stops here, with one sentence
    except ImproperlyConfigured as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 1
    execute_from_command_line([name, *arguments])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], "python -m hub"))
