"""A run of the fault suite: what fails in it is told, and what must be tried was."""

from contextlib import closing
from pathlib import Path

from lab.faults import kinds
from lab.faults.checker import empty, figures
from lab.faults.evidence import grouped
from lab.faults.fault import DONE, Fault, Scene
from lab.faults.invariants import InvariantRow
from lab.faults.kinds import TABLE
from lab.faults.kinds.programs import kill_at_points
from lab.faults.load import Load
from lab.faults.oplog import OpLog
from lab.faults.oplog import read as read_log
from lab.faults.participants import Participants
from lab.faults.run import UNSEEN, do, run
from lab.faults.stack import FaultStack


def test_a_row_that_must_be_filled_and_is_not_is_seen() -> None:
    rows = [
        InvariantRow("F2", "a delivery that a killed worker was sending arrives", 1),
        InvariantRow("F4", DONE, 1),
    ]
    assert [(row.name, row.n, len(row.violations)) for row in empty(rows, [TABLE["F2"], TABLE["F15"]])] == [
        ("F15", 0, 1),
        ("F15", 0, 1),
    ]
    of_any_figure = Fault("N1", "x", 1, 1, kill_at_points)
    assert [row.says for row in empty(rows, [of_any_figure])] == ["a figure of its own"]
    assert not list(empty([InvariantRow("N1", "x", 1)], [of_any_figure]))
    assert list(empty([InvariantRow("N1", DONE, 1)], [of_any_figure]))


def test_every_fault_has_rows_that_it_must_fill() -> None:
    sources = "".join(path.read_text() for path in Path(kinds.__path__[0]).parent.rglob("*.py"))
    declared = [says for fault in TABLE.values() for says in fault.fills]
    assert all(declared)
    assert [says for says in declared if sources.count(f'"{says}') < 2] == []  # the declaration, and the figure


async def test_a_fault_that_fails_is_a_violation_and_the_run_goes_on(tmp_path: Path) -> None:
    async def fail(scene: Scene) -> None:
        scene.note("something", True)
        raise TimeoutError("no agent came")

    with closing(OpLog(tmp_path / "operations.jsonl")) as log:
        stack = FaultStack(tmp_path, log)
        fault = Fault("F1", "x", 1, 1, fail, loops=0)
        participants = Participants(stack, log)
        scene = Scene(stack, participants, Load(participants, 0), log, 1, done=7)
        done = await do(fault, scene, until_asks=0, deadline=0)
        rows = figures(grouped({"seen": [line for line in read_log(log.path) if line["op"] == "seen"]}, []))
    assert (done, scene.done) == (1, 8)
    seen = [(row.name, row.says, len(row.violations)) for row in rows]
    assert seen == [("F1", "something", 0), ("F1", DONE, 1)]
    assert "no agent came" in rows[1].violations[0]


def test_a_fault_done_again_goes_on_with_the_next_number(tmp_path: Path) -> None:
    with closing(OpLog(tmp_path / "operations.jsonl")) as log:
        stack = FaultStack(tmp_path, log)
        participants = Participants(stack, log)
        scene = Scene(stack, participants, Load(participants, 0), log, 3)
        assert list(scene.numbers) == [0, 1, 2]
        scene.done, scene.count = 3, 1
        assert list(scene.numbers) == [3]


async def test_a_hub_that_cannot_be_started_is_a_violation_and_no_lost_table(tmp_path: Path) -> None:
    fault = Fault("F1", "x", 1, 1, kill_at_points, stack={"nonsense": 1})
    outcome = await run([(fault, 1)], tmp_path, asks=0)
    assert [(row.says, len(row.violations)) for row in outcome.rows] == [(UNSEEN, 1)]
