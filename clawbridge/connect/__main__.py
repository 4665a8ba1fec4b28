"""`clawbridge connect`, `connect.pyz` and `python -m clawbridge.connect`: see `--help`."""

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from clawbridge.connect import cli, options

NAMES = {"connect": "python3 connect.pyz"}  # by which the help calls it


class OneLineParser(argparse.ArgumentParser):
    """A parser whose complaint is one line, without the usage in front."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see --help)\n")


def build_parser(name: str) -> argparse.ArgumentParser:
    """The parser of the options. `name`: how the user calls the program."""
    parser = OneLineParser(
        prog=name,
        allow_abbrev=False,
        description=options.DESCRIPTION,
        epilog=options.EPILOG.replace("python3 connect.pyz", NAMES.get(name, name)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_arguments(parser)
    return parser


def main(arguments: Sequence[str] | None = None, name: str = "connect") -> int:
    """Run the command line; the answer is the exit code."""
    return cli.run(build_parser(name).parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
