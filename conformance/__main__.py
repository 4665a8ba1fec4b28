"""`make conformance REPORT=reports/compatibility.json KIT=commit`: record a run of the kit, and make its page.

Runs against several kinds of hub make one record: `REPORT="embedded=one.json grown=another.json"`.
"""

import argparse
import sys
from pathlib import Path

from conformance.profile import PAGE, RECORD, Record, encode, join, page_of, read_report


def main() -> int:
    """Write the record and its page; returns 1, and writes no file, if the report cannot be used."""
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__)
    parser.add_argument("report", nargs="+", help="the kit's reports/compatibility.json, or HOME=FILE")
    parser.add_argument("--kit", required=True, help="the version or commit of the kit")
    asked = parser.parse_args()
    runs: dict[str, Record] = {}
    for report in asked.report:
        home, _, path = report.rpartition("=")
        try:
            runs[home] = read_report(Path(path).read_bytes(), asked.kit)
        except (OSError, ValueError) as wrong:
            print(f"{path}: {wrong}", file=sys.stderr)
            return 1
    record = runs[""] if [*runs] == [""] else join(runs)
    RECORD.write_bytes(encode(record))
    PAGE.write_text(page_of(record))
    print(f"{len(record.requirements)} requirements of {record.day} in {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
