"""`clawbridge evaluations`: sets of saved questions to one's own agents, and their runs."""

import time
from datetime import datetime
from typing import Any

import click
import msgspec

from clawbridge.calls import HubRequest, agent_path, convert
from clawbridge.client import Client
from clawbridge.completion import complete_handle
from clawbridge.groups import ListsByDefault
from clawbridge.lists import local_time
from clawbridge.sign_in import Connect, json_option, with_hub
from clawbridge.terminal import CommandFailure, ExitCode, write_json, write_note, write_table

EVALUATIONS = "/api/v1/evaluations"
MOST = 100
LOOK_EVERY_S = 1.0
AS_JSON = "Print the hub's answer as one line of JSON."


class Run(msgspec.Struct, frozen=True, rename="camel"):
    """A run of a set."""

    id: int
    card_version: str
    started_at: datetime
    ended_at: datetime | None
    waiting: int
    passed: int
    not_passed: int
    failed: int
    left_out: int

    @property
    def all(self) -> int:
        """The number of questions."""
        return self.waiting + self.passed + self.not_passed + self.failed + self.left_out


class Result(msgspec.Struct, frozen=True, rename="camel"):
    """What came of a question."""

    question: str
    state: str
    detail: str
    route_id: str


class WholeRun(Run, frozen=True, rename="camel"):
    """`GET /api/v1/evaluations/{id}/runs/{runId}`."""

    results: list[Result] = []


class RunPage(msgspec.Struct, frozen=True):
    """`GET /api/v1/evaluations/{id}/runs`, newest first."""

    items: list[Run]
    total: int


class QuestionSet(msgspec.Struct, frozen=True, rename="camel"):
    """The columns of a set in a list."""

    id: int
    agent: str
    name: str
    schedule: str
    questions: int
    latest_run: Run | None


class SetPage(msgspec.Struct, frozen=True):
    """`GET /api/v1/evaluations`."""

    items: list[QuestionSet]
    total: int


@click.group(cls=ListsByDefault)
def evaluations() -> None:
    """List and run sets of saved questions to your agents."""


@evaluations.command("list")
@click.option("--agent", metavar="@OWNER/SLUG", default="", shell_complete=complete_handle, help="Of one agent.")
@json_option(AS_JSON)
@with_hub
def list_sets(agent: str, as_json: bool, connect: Connect) -> None:
    """List your sets of saved questions with their last runs."""
    if agent:
        agent_path(agent)
    query: dict[str, Any] = {"limit": MOST} | ({"agent": agent.removeprefix("@")} if agent else {})
    with connect() as client:
        answer = client.call(HubRequest("GET", EVALUATIONS, query))
        page = convert(client.url, answer, SetPage)
    if as_json:
        write_json(answer)
        return
    rows = [
        [str(one.id), f"@{one.agent}", one.name, one.schedule, str(one.questions), _describe(one.latest_run)]
        for one in page.items
    ]
    if rows:
        write_table([["ID", "AGENT", "NAME", "SCHEDULE", "QUESTIONS", "LAST RUN"], *rows])
    else:
        write_note("No set of saved questions. The hub's page /desk/evaluations makes one.")


@evaluations.command("run")
@click.argument("number", metavar="ID", type=click.IntRange(1))
@click.option("--no-wait", is_flag=True, help="Do not wait for the end of the run.")
@json_option(AS_JSON)
@with_hub
def run_set(number: int, no_wait: bool, as_json: bool, connect: Connect) -> None:
    """Ask the questions of the set ID, and show the results.

    The exit code is 1 if a question has not passed.
    """
    with connect() as client:
        answer = client.call(HubRequest("POST", f"{EVALUATIONS}/{number}/runs", body={}))
        run = convert(client.url, answer, Run)
        if no_wait:
            write_json(answer) if as_json else write_note(f"Run {run.id} has begun.")
            return
        while True:
            answer = client.call(HubRequest("GET", f"{EVALUATIONS}/{number}/runs/{run.id}"))
            whole = convert(client.url, answer, WholeRun)
            if whole.ended_at is not None:
                break
            time.sleep(LOOK_EVERY_S)
    _show(answer, whole, as_json=as_json)
    if whole.passed < whole.all:
        raise CommandFailure(ExitCode.FAILED, f"{whole.passed} of {whole.all} questions passed")


@evaluations.command("show")
@click.argument("number", metavar="ID", type=click.IntRange(1))
@click.argument("run", metavar="[RUN]", type=click.IntRange(1), required=False)
@json_option(AS_JSON)
@with_hub
def show_run(number: int, run: int | None, as_json: bool, connect: Connect) -> None:
    """Show the results of the last run of the set ID, or of RUN."""
    with connect() as client:
        run_id = run or _find_last(client, number)
        if run_id is None:
            write_note(f"The set was not run yet: clawbridge evaluations run {number}")
            return
        answer = client.call(HubRequest("GET", f"{EVALUATIONS}/{number}/runs/{run_id}"))
        whole = convert(client.url, answer, WholeRun)
    _show(answer, whole, as_json=as_json)


def _find_last(client: Client, number: int) -> int | None:
    answer = client.call(HubRequest("GET", f"{EVALUATIONS}/{number}/runs", {"limit": 1}))
    page = convert(client.url, answer, RunPage)
    return page.items[0].id if page.items else None


def _describe(run: Run | None) -> str:
    if run is None:
        return "none yet"
    state = "" if run.ended_at is not None else ", goes on"
    return f"{run.passed} of {run.all} passed{state}, {local_time(run.started_at)}"


def _show(answer: Any, run: WholeRun, *, as_json: bool) -> None:
    if as_json:
        write_json(answer)
        return
    write_note(f"Run {run.id} of card {run.card_version}: {_describe(run)}")
    rows = [[one.state.replace("_", " "), one.question, one.detail, one.route_id] for one in run.results]
    if rows:
        write_table([["RESULT", "QUESTION", "WHY", "ASK"], *rows])
