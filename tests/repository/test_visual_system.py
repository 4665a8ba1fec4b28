"""The style sheet takes colours, text sizes, corners and shadows from tokens (docs/topics/visual-system.md)."""

import re

from tests.repository.tracked import ROOT

SHEET = (ROOT / "static" / "site.css").read_text()
DOCUMENT = (ROOT / "docs" / "topics" / "visual-system.md").read_text()
START = SHEET.index(":root {")
END = SHEET.index("}\n", START)
TOKENS = dict(re.findall(r"(--[\w-]+): ([^;]+);", SHEET[START:END]))
IN_CHARTS = r"\.chart text \{[^}]*\}"  # in the units of the drawing
RULES = re.sub(rf"/\*.*?\*/|{IN_CHARTS}", "", SHEET[END:], flags=re.DOTALL)

RAW_COLOURS = re.compile(r"#[0-9a-f]{3,8}\b|\b(?:rgba?|hsla?|oklch|lab|color-mix|light-dark)\(", re.IGNORECASE)
NAMED = re.compile(
    r"\b(?:color|background|border|fill|stroke)[\w-]*\s*:[^;}]*\b(?:white|black|red|green|gr[ae]y)\b"
)
SIZES = re.compile(r"font(?:-size)?\s*:\s*([^;}]+)")
CORNERS = re.compile(r"border-radius\s*:\s*([^;}]+)")
OF_TEXT = re.compile(r"(?:var\(--text-[a-z]+\)(?:/[\d.]+ .*)?|[\d.]+em|inherit)\Z")
OF_CORNERS = re.compile(r"(?:var\(--round(?:-[a-z]+)?\)|50%|0|[1-4]px)\Z")


def test_no_rule_has_a_colour_of_its_own() -> None:
    found = RAW_COLOURS.findall(RULES) + NAMED.findall(RULES)
    assert not found, f"take one of {[name for name in TOKENS if 'light-dark' in TOKENS[name]]}"


def test_no_rule_has_a_size_of_text_of_its_own() -> None:
    found = [size for size in SIZES.findall(RULES) if not OF_TEXT.match(size.strip())]
    assert not found, f"take one of {[name for name in TOKENS if name.startswith('--text-')]}"


def test_no_rule_has_corners_of_its_own() -> None:
    found = [corner for corner in CORNERS.findall(RULES) if not OF_CORNERS.match(corner.strip())]
    assert not found, f"take one of {[name for name in TOKENS if name.startswith('--round')]}"


def test_every_token_is_used_and_described() -> None:
    assert len(TOKENS) > 20
    assert not [name for name in TOKENS if f"var({name})" not in SHEET]
    described = set(re.findall(r"^\| `(--[\w-]+)` \|", DOCUMENT, re.MULTILINE))
    assert described == set(TOKENS)


def test_every_rule_names_a_token_that_exists() -> None:
    own = set(re.findall(r"(--[\w-]+)\s*:", RULES))
    assert not set(re.findall(r"var\((--[\w-]+)", SHEET)) - set(TOKENS) - own


def test_no_rule_looks_into_every_element() -> None:
    """A `:has` of any element, or of any in it, makes the browser match many elements again with each change."""
    assert not re.findall(r"[^{}]*(?<![\w\])*(-]):has\([^{}]*|[^{}]*:has\([>+~ ]*:not[^{}]*", RULES)
