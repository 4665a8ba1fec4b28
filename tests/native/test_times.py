"""Times on pages: UTC from the hub, in the visitor's zone by the page's script."""

import re
from datetime import UTC, datetime, timedelta, timezone

from kit.page_tags import FORMS, moment
from tests.repository.tracked import ROOT

WHEN = datetime(2026, 11, 3, 23, 5, 9, tzinfo=timezone(timedelta(hours=-5)))


def test_a_time_is_written_in_utc_and_says_so_on_hover() -> None:
    head = '<time datetime="2026-11-04T04:05:09.000Z" title="4 Nov 2026, 04:05:09 UTC"'
    assert moment(WHEN) == f'{head} data-form="second">4 Nov 2026, 04:05:09</time>'
    assert moment(WHEN, "minute") == f'{head} data-form="minute">4 Nov 2026, 04:05</time>'
    assert moment(WHEN, "day") == f'{head} data-form="day">4 Nov 2026</time>'
    assert moment(WHEN, "clock") == f'{head} data-form="clock">04:05:09</time>'


def test_how_long_ago_stays_as_it_is_in_every_zone() -> None:
    assert re.fullmatch(
        r'<time datetime="[^"]+" title="[^"]+ UTC">just now</time>', moment(datetime.now(UTC), "ago")
    )


def test_the_script_has_the_same_forms() -> None:
    table = (ROOT / "static/js/times.js").read_text().partition("const FORMS = {")[2].partition("};")[0]
    assert re.findall(r"(\w+): \{", table) == list(FORMS)


def test_no_template_writes_a_time_by_itself() -> None:
    pages = [path for path in (ROOT / "templates").rglob("*.html") if "admin" not in path.parts]
    found = [
        path.name
        for path in pages
        if re.search(r"\|(?:ago|time)\b|\|date:[\"'][^\"']*[HhGgcUs]", path.read_text())
    ]
    assert len(pages) > 50
    assert not found, "use {% moment … %} of kit.page_tags"
