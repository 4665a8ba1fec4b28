"""How receivers verify a delivery: the how-to says it, the page shows the how-to."""

from functools import cache
from pathlib import Path

HOWTO = Path(__file__).resolve().parents[1] / "docs" / "howto" / "receive-webhooks.md"
SECTION = "## Verify\n"


@cache
def verify_recipes() -> str:
    """The how-to's section on verifying, as Markdown; empty where the docs were not installed."""
    try:
        text = HOWTO.read_text("utf-8")
    except FileNotFoundError:
        return ""
    return text.partition(SECTION)[2].partition("\n## ")[0]
