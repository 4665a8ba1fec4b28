"""The command `clawbridge-hub`, and `python clawbridge_hub`: what `manage.py` is in a checkout."""

import sys
from pathlib import Path

# Put first, so that `agents` and others are the hub's, not another distribution's.
sys.path.insert(0, str(Path(__file__).parent))

from hub.__main__ import main as run


def main() -> int:
    """Run one command; the exit code."""
    return run(sys.argv[1:], "clawbridge-hub")


if __name__ == "__main__":
    sys.exit(main())
