"""The dark scheme differs from the light one in colours alone: axe tries only the rules about colours in dark."""

import re

from lab import ROOT

CSS = (ROOT / "static" / "site.css").read_text()


def test_no_rule_depends_on_the_scheme() -> None:
    assert "prefers-color-scheme" not in CSS
    themed = re.findall(r"([^{}]*data-theme[^{}]*)\{([^{}]*)\}", CSS)
    assert {declarations.strip() for _, declarations in themed} == {"color-scheme: light;", "color-scheme: dark;"}


def test_what_depends_on_the_scheme_is_a_colour() -> None:
    chosen = re.findall(r"([\w-]+)\s*:\s*[^;{}]*light-dark\(([^;{}]*)\)\s*;", CSS)
    assert len(chosen) == CSS.count("light-dark(")
    for name, (light, dark) in ((name, values.split(", ")) for name, values in chosen):
        for value in (light, dark):
            assert re.fullmatch(r"#[0-9a-f]{6}", value), f"{name}: {value}"
