"""Collects the tests without the garbage collector.

What a worker collects stays until its end: ten thousand tests, and the modules that they need. To look through all
of them again and again took a seventh of the time of collecting.
"""

import gc
from collections.abc import Generator

import pytest

gc.disable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Never look again at what there is now; garbage that the tests make is collected as always."""
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
