"""The addresses that Django serves."""

from collections.abc import Iterable, Iterator

from django.urls import URLPattern, URLResolver, get_resolver


def routes() -> Iterator[tuple[str, URLPattern]]:
    """Every pattern with its whole address, converters included."""
    return _below(get_resolver().url_patterns, "/")


def _below(patterns: Iterable[URLPattern | URLResolver], before: str) -> Iterator[tuple[str, URLPattern]]:
    for one in patterns:
        here = before + str(one.pattern)
        if isinstance(one, URLResolver):
            yield from _below(one.url_patterns, here)
        else:
            yield here, one
