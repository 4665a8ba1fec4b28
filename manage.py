#!/usr/bin/env python
"""The hub's command line: `manage.py help` lists what it can do."""

import sys

from hub.__main__ import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
