"""Collects the tests without the garbage collector, and no files of which all tests are left out.

All that a worker collects stays until its end: ten thousand tests, and their modules. To look through all
of them again and again took a seventh of the time of collecting.
"""

import gc
import re
from collections.abc import Generator
from pathlib import Path

import pytest

ALL_DEEP = re.compile(r"^pytestmark = .*\bpytest\.mark\.deep\b", re.MULTILINE)

gc.disable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Never look again at what there is now; garbage that the tests make is collected as always."""
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import a file whose tests are all `deep` where these are left out: it may make a large table."""
    if "not deep" not in config.option.markexpr or collection_path.suffix != ".py":
        return None
    return True if ALL_DEEP.search(collection_path.read_text()) else None
