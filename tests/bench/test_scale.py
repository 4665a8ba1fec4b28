"""The commands of `make bench-scale`, each for a moment: they start, measure what they say, and keep it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lab import ROOT

pytestmark = [pytest.mark.deep, pytest.mark.slow, pytest.mark.timeout(300)]


def run(name: str, results: Path, *options: str) -> tuple[str, dict[str, Any]]:
    """The output of a command, and the result that the command kept."""
    command = [sys.executable, "-m", f"lab.bench.{name}", *options, "--results", str(results)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    (kept,) = results.glob("*.json")
    return done.stdout, json.loads(kept.read_text())


def test_the_soak_counts_tasks_descriptors_and_how_visits_ended(tmp_path: Path) -> None:
    options = ("--minutes", "0.1", "--every", "1", "--rate", "20", "--home", "embedded")
    told, kept = run("soak", tmp_path, *options)
    *samples, last = kept["runs"]
    assert len(samples) >= 3
    assert all(one["tasks"] > 5 and one["fds"] > 5 and one["rss_kib"] > 20_000 for one in samples)
    assert last["last"][0]["as it was"]["objects"] > last["last"][0]["garbage collected"]["objects"] > 0
    assert "completed" in next(line for line in told.splitlines() if line.startswith("send "))


def test_abuse_reads_the_memory_of_a_hub_that_answers_large_questions(tmp_path: Path) -> None:
    told, kept = run("abuse", tmp_path, "--minutes", "0.1")
    assert all(look["rss_mib"] > 20 for look in kept["runs"])
    assert {"broken_json: 200", "large_question: completed", "large_stream: completed", "page: 404"} <= {
        line.rsplit(maxsplit=1)[0].strip() for line in told.splitlines() if line
    }


@pytest.mark.distributed
def test_an_ask_that_crosses_processes_is_compared_with_one_that_stays(tmp_path: Path) -> None:
    options = ("--processes", "2", "--connections", "4", "--rounds", "1", "--seconds", "1")
    told, kept = run("scale_processes", tmp_path, *options)
    assert {one["way"] for one in kept["runs"]} == {"stay", "cross", "any"}
    runs = [one["run"] for one in kept["runs"]]
    assert all(one["asks_per_s"] > 0 and not one["errors"] for one in runs)
    assert all(one["used"]["web_s"] > 0 and one["used"]["postgres_s"] > 0 for one in runs)
    assert "crosses / stays" in told


def test_asks_of_a_hub_with_a_past_are_measured(tmp_path: Path) -> None:
    options = ("--home", "embedded", "--sizes", "20x6000", "--rounds", "1", "--seconds", "1", "--batches", "3")
    _, kept = run("scale_growth", tmp_path, *options)
    (found,) = kept["runs"]
    name = "20 agents, 6,000 turns"
    assert [one["admit_ms"] > 0 for one in found["batches"][name]] == [True] * 3
    assert not found["loaded"][name][0]["many"]["errors"]
    assert any("agents_turn" in one["statement"] for one in found["plans"][name])
    assert not [one for one in found["plans"][name] if one["scans"]]


def test_a_crowd_is_counted_before_and_after(tmp_path: Path) -> None:
    options = ("--home", "embedded", "--agents", "30", "--streams", "25", "--seconds", "1", "--times", "5")
    _, kept = run("scale_crowded", tmp_path, *options)
    (crowd,) = kept["runs"]
    assert (crowd["agents_left"], crowd["streams_left"]) == (30, 25)
    assert crowd["agents_kib"] > 0


def test_half_load_is_half_of_what_went_before(tmp_path: Path) -> None:
    told, kept = run("scale_latency", tmp_path, "--homes", "embedded", "--rounds", "1", "--seconds", "1")
    _, hub = kept["runs"]
    assert hub["half"]["rate"] == pytest.approx(hub["asks"]["asks_per_s"] / 2, abs=1)
    assert not hub["half"]["errors"]
    assert not hub["streams"]["errors"]
    assert "times the SDK's streams/s" in told
