"""`clawbridge agents` and `clawbridge tasks`: which agents can be asked, and what was asked."""

from datetime import datetime

import click

from clawbridge.calls import STATES, agent_path, convert, list_agents, list_questions
from clawbridge.completion import complete_handle
from clawbridge.shapes import WAITING, AgentPage, QuestionPage
from clawbridge.sign_in import Connect, json_option, with_hub
from clawbridge.terminal import write_json, write_note, write_table

MAX_AGENTS = 1000
MAX_TASKS = 50
ORDERS = ("handle", "use", "rate", "latency")
NOTHING_FITS = "No agent fits. `clawbridge agents` lists all that you may ask."
NOTHING_OWN = "You have no agent yet. A connected session becomes one when you publish it, on the page /desk."


@click.command()
@click.argument("search", default="")
@click.option("--online", is_flag=True, help="Only agents that are online.")
@click.option("--mine", is_flag=True, help="Your own agents, drafts too.")
@click.option("--favourites", is_flag=True, help="Only agents that you marked.")
@click.option("--tag", default="", help="Only agents with this tag.")
@click.option(
    "--sort", type=click.Choice(ORDERS), default=None, help="By handle, use, rate of answers or latency."
)
@click.option(
    "--limit", type=click.IntRange(1, MAX_AGENTS), default=100, show_default=True, help="How many to ask for."
)
@click.option("--offset", type=click.IntRange(0), default=0, help="How many to leave out.")
@json_option("Print the hub's answer as one line of JSON.")
@with_hub
def agents(
    search: str,
    online: bool,
    mine: bool,
    favourites: bool,
    tag: str,
    sort: str | None,
    limit: int,
    offset: int,
    as_json: bool,
    connect: Connect,
) -> None:
    """List the agents that you may ask, by handle.

    SEARCH: words of the handle, name, tagline, skills or description; the most relevant agents are first.
    """
    with connect() as client:
        answer = client.call(
            list_agents(
                search,
                mine=mine,
                limit=limit,
                offset=offset,
                tag=tag,
                sort=sort or "",
                favourites=favourites,
            )
        )
        page = convert(client.url, answer, AgentPage)
    if as_json:
        items = [shown for shown, one in zip(answer["items"], page.items, strict=True) if one.online or not online]
        write_json({**answer, "items": items})
        return
    rows = [
        [f"@{one.handle}", "online" if one.online else "offline", one.tagline or one.name]
        for one in page.items
        if one.online or not online
    ]
    if rows:
        write_table([["AGENT", "STATE", "ABOUT"], *rows])
    elif search or online or mine or offset or favourites or tag:
        others = search or online or offset or favourites or tag
        write_note(NOTHING_OWN if mine and not others else NOTHING_FITS)
    else:
        write_note("No agent is published. `clawbridge connect --help` says how to make one.")
    end = offset + len(page.items)
    if end < page.total:
        write_note(f"{end} of {page.total} agents; --offset {end} continues")


@click.command()
@click.argument("handle", metavar="[@OWNER/SLUG]", required=False, shell_complete=complete_handle)
@click.option("--search", metavar="WORDS", default="", help="Words in the question.")
@click.option("--state", type=click.Choice(STATES), metavar="STATE", help="Only questions in this state.")
@click.option(
    "--limit", type=click.IntRange(1, MAX_TASKS), default=25, show_default=True, help="How many to ask for."
)
@click.option("--before", metavar="NEXT", default="", help="Continue a list: what the page before named.")
@json_option("Print the hub's answer as one line of JSON, with replies.")
@with_hub
def tasks(
    handle: str | None,
    search: str,
    state: str | None,
    limit: int,
    before: str,
    as_json: bool,
    connect: Connect,
) -> None:
    """List what you asked, newest first: of all agents, or of one.

    \b
    States:
      queued          it waits until the agent is free     rejected   by the agent
      open            the agent works on it                canceled   by you, or by the agent
      input_required  the agent asks something:            failed     no reply, or not all of it
                      `clawbridge reply TASK …`            denied     by the hub, before the agent
      auth_required   the agent asks for authorization                was asked
      completed       the agent replied
    """
    if handle:
        agent_path(handle)
    request = list_questions(agent=handle or "", search=search, state=state or "", limit=limit, before=before)
    with connect() as client:
        answer = client.call(request)
        page = convert(client.url, answer, QuestionPage)
    if as_json:
        write_json(answer)
        return
    rows = [
        [local_time(one.asked_at), one.state, f"@{one.agent}", one.task_id or "-", one.question]
        for one in page.items
    ]
    if rows:
        write_table([["ASKED", "STATE", "AGENT", "TASK", "QUESTION"], *rows])
    elif page.next:
        write_note("No question among those that the hub looked at fits; there are older ones.")
    elif handle or search or state or before:
        write_note("No question fits. `clawbridge tasks` lists all that you asked.")
    else:
        write_note('No question yet. Ask one: clawbridge ask @OWNER/SLUG "…"')
    waiting = next((one.task_id for one in page.items if one.state.upper() in WAITING), None)
    if waiting:
        write_note(f"An agent waits for you: clawbridge reply {waiting} ANSWER")
    if page.next:
        write_note(f"more: --before {page.next}")


def local_time(at: datetime) -> str:
    """A time of the hub's in this machine's time zone."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M")
