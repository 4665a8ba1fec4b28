"""Slugs, and the rule for lists of names that an owner writes."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NameRule:
    """The rule for the names that a list may hold. `wanted`: how a name is written, in a public text."""

    is_name: Callable[[str], bool]
    wanted: str
    most: int
    most_chars: int

    def check(self, names: Iterable[str]) -> list[str]:
        """The names, each once.

        Raises:
            ValueError: a name breaks the rule; the text is public.
        """
        for name in names:
            if not self.is_name(name):
                raise ValueError(f"{name}: {self.wanted}")
        return list(dict.fromkeys(names))


def make_slug(text: str) -> str:
    """Make a routing name or agent slug of a text: `[a-z0-9-]`, at most 64 characters."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:64].strip("-")
