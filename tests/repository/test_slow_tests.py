"""A test of `make test` that takes over 20 s fails; one of `make test-deep` may take longer."""

import subprocess
import sys
from pathlib import Path

import pytest

from lab import ROOT
from tests.conftest import BESIDE_OTHERS, LONGEST_CALL_S, longest_call_s

TESTS = """
import time

import pytest

from tests import conftest

conftest.LONGEST_CALL_S = 0.002

def test_quick():
    pass


def test_slow():
    time.sleep(0.5)


@pytest.mark.deep
def test_deep():
    time.sleep(0.5)
"""


@pytest.mark.slow
def test_a_slow_test_fails_unless_it_is_deep(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_runtest_makereport\n")
    (tmp_path / "test_three.py").write_text(TESTS)
    options = ("-q", "-p", "no:cacheprovider", "-c", "pyproject.toml")
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert "1 failed, 2 passed" in done.stdout, done.stdout
    assert "FAILED" in done.stdout
    assert "test_slow" in done.stdout.partition("FAILED")[2]


def test_a_busy_machine_is_given_more_time() -> None:
    for load, workers, factor in [(0.1, 1, 1), (2, 1, 1), (5, 1, 2.5), (2, 2, BESIDE_OTHERS)]:
        assert longest_call_s(load, cores=2, workers=workers) == LONGEST_CALL_S * factor, (load, workers, factor)
