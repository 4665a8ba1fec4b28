"""`python -m connect`, `connect.pyz` and `clawbridge-connect`: see `--help`."""

import argparse
import sys
from typing import NoReturn

from connect import cli


class OneLineParser(argparse.ArgumentParser):
    """A parser whose complaint is one line, without the usage in front."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see --help)\n")


def main() -> int:
    """Run the command line; the answer is the exit code."""
    parser = OneLineParser(
        prog="connect",
        allow_abbrev=False,
        description=cli.DESCRIPTION,
        epilog=cli.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cli.add_arguments(parser)
    return cli.run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
