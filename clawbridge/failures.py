"""`clawbridge failures`: how one's own agents failed, in groups, and their states."""

from datetime import datetime
from typing import Any

import click
import msgspec

from clawbridge.calls import HubRequest, agent_path, convert
from clawbridge.completion import complete_handle
from clawbridge.lists import local_time
from clawbridge.sign_in import Connect, json_option, with_hub
from clawbridge.terminal import bad_arguments, write_json, write_note, write_table

FAILURES = "/api/v1/failures"
MAX_FAILURES = 1000
STATES = ("open", "resolved", "ignored", "all")


class Failure(msgspec.Struct, frozen=True, rename="camel"):
    """A group of failures."""

    id: int
    handle: str
    text: str
    state: str
    count: int
    callers: int
    last_at: datetime


class FailurePage(msgspec.Struct, frozen=True):
    """`GET /api/v1/failures`, the last to occur first."""

    items: list[Failure]
    total: int


class FailedAsk(msgspec.Struct, frozen=True, rename="camel"):
    """One of the asks that failed."""

    asked_at: datetime
    asker_login: str
    route_id: str
    text: str | None = None


class WholeFailure(Failure, frozen=True, rename="camel"):
    """`GET /api/v1/failures/{id}`."""

    recent: list[FailedAsk] = []


@click.command()
@click.argument("number", metavar="[ID]", type=click.IntRange(1), required=False)
@click.option("--agent", metavar="@OWNER/SLUG", default="", shell_complete=complete_handle, help="Of one agent.")
@click.option("--state", type=click.Choice(STATES), default="open", show_default=True, help="Only in this state.")
@click.option(
    "--resolve", "change", flag_value="resolved", help="Resolve the failure ID: it opens when it recurs."
)
@click.option("--ignore", "change", flag_value="ignored", help="Ignore the failure ID: it is only counted.")
@click.option("--reopen", "change", flag_value="open", help="Open the failure ID again.")
@click.option(
    "--limit", type=click.IntRange(1, MAX_FAILURES), default=25, show_default=True, help="How many to ask for."
)
@click.option("--offset", type=click.IntRange(0), default=0, help="How many to leave out.")
@json_option("Print the hub's answer as one line of JSON.")
@with_hub
def failures(
    number: int | None,
    agent: str,
    state: str,
    change: str | None,
    limit: int,
    offset: int,
    as_json: bool,
    connect: Connect,
) -> None:
    """List how your agents failed, in groups, or show the failure ID with its last questions."""
    if agent:
        agent_path(agent)
    if number is None and change:
        raise bad_arguments("which failure? Its ID is in the list: clawbridge failures")
    with connect() as client:
        if number is None:
            query: dict[str, Any] = {"limit": limit, "offset": offset}
            query |= {"state": state} if state != "all" else {}
            query |= {"agent": agent.removeprefix("@")} if agent else {}
            answer = client.call(HubRequest("GET", FAILURES, query))
            page = convert(client.url, answer, FailurePage)
        elif change:
            answer = client.call(HubRequest("PATCH", f"{FAILURES}/{number}", body={"state": change}))
            page = FailurePage([convert(client.url, answer, Failure)], 1)
        else:
            answer = client.call(HubRequest("GET", f"{FAILURES}/{number}"))
            page = FailurePage([convert(client.url, answer, WholeFailure)], 1)
    if as_json:
        write_json(answer)
        return
    rows = [
        [
            str(one.id),
            one.state,
            str(one.count),
            str(one.callers),
            local_time(one.last_at),
            f"@{one.handle}",
            one.text,
        ]
        for one in page.items
    ]
    if rows:
        write_table([["ID", "STATE", "TIMES", "CALLERS", "LAST", "AGENT", "FAILURE"], *rows])
    else:
        write_note(
            "No failure." if state == "all" else f"No {state} failure. --state all lists those in any state."
        )
    for one in page.items:
        if isinstance(one, WholeFailure) and one.recent:
            asks = [
                [local_time(ask.asked_at), f"@{ask.asker_login}", ask.route_id, ask.text or ""]
                for ask in one.recent
            ]
            write_table([["ASKED", "CALLER", "ASK", "THE AGENT SAID"], *asks])
    end = offset + len(page.items)
    if number is None and end < page.total:
        write_note(f"{end} of {page.total} failures; --offset {end} continues")
