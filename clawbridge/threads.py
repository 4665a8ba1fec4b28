"""`clawbridge threads` and `clawbridge thread`: conversations with agents, found, read, renamed and deleted."""

import click

from clawbridge.calls import HubRequest, convert, list_threads, thread_path
from clawbridge.completion import complete_handle
from clawbridge.lists import local_time
from clawbridge.shapes import ThreadEntry, ThreadPage
from clawbridge.sign_in import Connect, json_option, with_hub
from clawbridge.terminal import bad_arguments, write_json, write_note, write_reply, write_table

MAX_THREADS = 100
STATES = ("current", "archived", "all")
NONE_YET = 'No thread yet. Ask an agent: clawbridge ask @OWNER/SLUG "…"'


@click.command()
@click.argument("search", default="")
@click.option(
    "--agent", metavar="@OWNER/SLUG", default="", help="Only with this agent.", shell_complete=complete_handle
)
@click.option("--state", type=click.Choice(STATES), default="current", show_default=True, help="Which threads.")
@click.option(
    "--limit", type=click.IntRange(1, MAX_THREADS), default=25, show_default=True, help="How many to ask for."
)
@click.option("--offset", type=click.IntRange(0), default=0, help="How many to leave out.")
@json_option("Print the hub's answer as one line of JSON.")
@with_hub
def threads(search: str, agent: str, state: str, limit: int, offset: int, as_json: bool, connect: Connect) -> None:
    """List your conversations with agents, the one asked last first.

    SEARCH: words of questions, answers and titles. `clawbridge thread ID` prints one.
    """
    with connect() as client:
        answer = client.call(list_threads(search, agent=agent, state=state, limit=limit, offset=offset))
        page = convert(client.url, answer, ThreadPage)
    if as_json:
        write_json(answer)
        return
    rows = [
        [local_time(one.last_asked_at), one.id, f"@{one.agent}", str(one.questions), one.title]
        for one in page.items
    ]
    if rows:
        write_table([["ASKED", "THREAD", "AGENT", "QUESTIONS", "TITLE"], *rows])
    elif search or agent or offset or state != "current":
        write_note("No thread fits. `clawbridge threads` lists those that are not archived.")
    else:
        write_note(NONE_YET)
    end = offset + len(page.items)
    if end < page.total:
        write_note(f"{end} of {page.total} threads; --offset {end} continues")


@click.command()
@click.argument("thread_id", metavar="ID")
@click.option("--title", metavar="TITLE", default=None, help="Rename it.")
@click.option("--archive", "archived", flag_value=True, type=bool, default=None, help="Take it out of the list.")
@click.option("--restore", "archived", flag_value=False, type=bool, help="Put it back.")
@click.option("--delete", is_flag=True, help="Delete it with its questions and answers, for good.")
@json_option("Print the thread as JSON: with all parts of its messages and files, or as it was changed.")
@with_hub
def thread(
    thread_id: str, title: str | None, archived: bool | None, delete: bool, as_json: bool, connect: Connect
) -> None:
    """Print the thread ID as Markdown, or change it.

    `clawbridge threads` lists ids; `clawbridge ask @OWNER/SLUG --context CONTEXT …` continues a thread.
    """
    path = thread_path(thread_id)
    wanted = {"title": title, "archived": archived}
    changes = {name: value for name, value in wanted.items() if value is not None}
    if delete and changes:
        raise bad_arguments("--delete goes with no other change")
    with connect() as client:
        if delete:
            client.call(HubRequest("DELETE", path))
            if as_json:
                write_json({"id": thread_id, "deleted": True})
            else:
                write_note("Deleted.")
            return
        if changes:
            changed = client.call(HubRequest("PATCH", path, body=changes))
            one = convert(client.url, changed, ThreadEntry)
            if as_json:
                write_json(changed)
            else:
                write_note(f"{'Archived' if one.archived else 'Current'}: {one.title}")
            return
        form = "json" if as_json else "markdown"
        text = client.read_text(HubRequest("GET", f"{path}/export", {"form": form}))
        write_reply(text)
        if as_json:
            return
        shown = convert(client.url, client.call(HubRequest("GET", path, {"limit": 1})), ThreadEntry)
    write_note(f"continue: clawbridge ask @{shown.agent} --context {shown.context_id} QUESTION")
