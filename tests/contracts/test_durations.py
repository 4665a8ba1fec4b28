"""The factor on durations: read once, bounded, and 1 in what ships."""

import os
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from kit.durations import TIME_SCALE, read_scale, seconds
from tests.homes import ROOT, hub_env


@pytest.mark.parametrize(("raw", "scale"), [("", 1.0), ("1", 1.0), ("0.25", 0.25), ("0.01", 0.01)])
def test_a_scale_is_a_number_up_to_one(raw: str, scale: float) -> None:
    assert read_scale(raw) == scale


@pytest.mark.parametrize("raw", ["0", "0.009", "1.01", "-1", "nan", "inf", "quick", "1,0"])
def test_another_scale_is_refused(raw: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"want a number from 0\.01 to 1"):
        read_scale(raw)


def test_durations_are_those_of_the_contract_without_the_variable() -> None:
    assert TIME_SCALE == 1
    assert (seconds(10.0), seconds(10.0, at_least_s=20.0)) == (10.0, 10.0)


def test_a_duration_is_shortened_to_its_lower_bound() -> None:
    assert seconds(10.0, scale=0.25) == 2.5
    assert seconds(10.0, at_least_s=4.0, scale=0.25) == 4.0
    assert seconds(3.0, at_least_s=4.0, scale=0.25) == 3.0


def test_a_bad_scale_stops_the_start_with_one_line() -> None:
    command = [sys.executable, "manage.py", "check"]
    env = hub_env({"TEST_TIME_SCALE": "soon", "DATA_DIR": os.devnull})
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["TEST_TIME_SCALE='soon': want a number from 0.01 to 1"]
