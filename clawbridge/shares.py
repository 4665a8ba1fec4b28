"""`clawbridge share`, `shares`, `shared` and `unshare`: answers that are shown to others."""

from urllib.parse import urlsplit

import click

from clawbridge.calls import HubRequest, convert
from clawbridge.completion import complete_task
from clawbridge.lists import local_time
from clawbridge.shapes import ReceivedShare, SharedAnswer, ShareEntry, SharePage
from clawbridge.sign_in import Connect, json_option, with_hub
from clawbridge.terminal import bad_arguments, write_json, write_note, write_reply, write_table

SHARES = "/api/v1/shares"
MAX_SHARES = 100
AUDIENCES = {"everyone": "everyone who is signed in", "link": "everyone who has the link"}


@click.command()
@click.argument("task", shell_complete=complete_task)
@click.option("--with", "logins", metavar="LOGIN", multiple=True, help="A user who may read it; may be repeated.")
@click.option("--group", "groups", metavar="GROUP", multiple=True, help="A group of yours; may be repeated.")
@click.option("--everyone", is_flag=True, help="Everyone who is signed in may read it.")
@click.option("--link", is_flag=True, help="Make a link; everyone who has it may read the answer.")
@click.option(
    "--days", type=click.IntRange(1), help="Until it ends: 7 for a link, else as long as the hub allows."
)
@click.option("--thread", is_flag=True, help="TASK is the id of a thread: show all of it.")
@json_option("Print the shares as one line of JSON.")
@with_hub
def share(
    task: str,
    logins: tuple[str, ...],
    groups: tuple[str, ...],
    everyone: bool,
    link: bool,
    days: int | None,
    thread: bool,
    as_json: bool,
    connect: Connect,
) -> None:
    """Show the answer to TASK, with its question, to others. Prints the addresses to send.

    \b
    Examples:
      clawbridge share task-4f1c --with bob
      clawbridge share task-4f1c --link --days 1
    """
    wanted: list[dict[str, str]] = [{"audience": "user", "login": login} for login in logins]
    wanted += [{"audience": "group", "login": group} for group in groups]
    wanted += [{"audience": "everyone"}] if everyone else []
    wanted += [{"audience": "link"}] if link else []
    if not wanted:
        raise bad_arguments("with whom? Use --with LOGIN, --group GROUP, --everyone or --link")
    what = {"threadId" if thread else "taskId": task, "days": days}
    with connect() as client:
        made = [client.call(HubRequest("POST", SHARES, body=what | one)) for one in wanted]
        shown = convert(client.url, made, list[ShareEntry])
    if as_json:
        write_json({"items": made})
        return
    for one in shown:
        click.echo(one.url)
        write_note(f"for {describe_audience(one)}, until {local_time(one.expires_at)}")


@click.command()
@click.option("--received", is_flag=True, help="What others share with you, in place of what you share.")
@click.option(
    "--limit", type=click.IntRange(1, MAX_SHARES), default=25, show_default=True, help="How many to ask for."
)
@click.option("--offset", type=click.IntRange(0), default=0, help="How many to leave out.")
@json_option("Print the hub's answer as one line of JSON.")
@with_hub
def shares(received: bool, limit: int, offset: int, as_json: bool, connect: Connect) -> None:
    """List the answers that you share, newest first; or those that others share with you."""
    query = {"limit": limit, "offset": offset}
    with connect() as client:
        answer = client.call(HubRequest("GET", f"{SHARES}/received" if received else SHARES, query))
        if received:
            received_page = convert(client.url, answer, SharePage[ReceivedShare])
            rows = [
                [str(one.id), f"@{one.shared_by}", f"@{one.agent}", local_time(one.expires_at), one.title]
                for one in received_page.items
            ]
            total = received_page.total
        else:
            page = convert(client.url, answer, SharePage[ShareEntry])
            rows = [
                [str(one.id), describe_audience(one), f"@{one.agent}", describe_end(one), one.title]
                for one in page.items
            ]
            total = page.total
    if as_json:
        write_json(answer)
        return
    if rows:
        write_table([["ID", "BY" if received else "FOR", "AGENT", "UNTIL", "QUESTION"], *rows])
    elif received:
        write_note("Nothing is shared with you.")
    else:
        write_note("You share no answers. `clawbridge share TASK --with LOGIN` shares one.")
    if offset + len(rows) < total:
        write_note(f"{offset + len(rows)} of {total}; --offset {offset + len(rows)} continues")


@click.command()
@click.argument("address", metavar="ID|ADDRESS")
@json_option("Print the hub's answer as one line of JSON, with files.")
@with_hub
def shared(address: str, as_json: bool, connect: Connect) -> None:
    """Print a shared answer, by its id (`clawbridge shares --received`), its address or its link."""
    with connect() as client:
        answer = client.call(HubRequest("GET", path_of(address)))
        found = convert(client.url, answer, SharedAnswer)
    if as_json:
        write_json(answer)
        return
    write_note(f"@{found.shared_by} asked @{found.agent}: {found.title}")
    for task in found.tasks:
        write_reply(f"{task.text}\n")
        for part in (part for artifact in task.artifacts for part in artifact.parts if part.filename):
            write_note(f"file {part.filename}: --json has its content")


@click.command()
@click.argument("share_id", metavar="ID", type=click.IntRange(1))
@json_option("Print `{id}`.")
@with_hub
def unshare(share_id: int, as_json: bool, connect: Connect) -> None:
    """End a share of yours, by its id of `clawbridge shares`: it shows the answer no longer."""
    with connect() as client:
        client.call(HubRequest("DELETE", f"{SHARES}/{share_id}"))
    if as_json:
        write_json({"id": share_id})
    else:
        write_note("It is not shared any more.")


def describe_audience(one: ShareEntry) -> str:
    """The user or users who may read a share."""
    return f"@{one.login}" if one.login else AUDIENCES.get(one.audience, one.audience)


def describe_end(one: ShareEntry) -> str:
    """The time at which a share ends; or that it is not shown."""
    return local_time(one.expires_at) if one.is_shown else "not shown"


def path_of(address: str) -> str:
    """The path of the call for a share.

    Raises:
        CommandFailure: the text is neither an id nor an address of a share.
    """
    *_, kind, last = ["", *urlsplit(address).path.rstrip("/").split("/")]
    if last.isascii() and last.isdecimal() and kind in ("", "shared"):
        return f"{SHARES}/{last}"
    if last.isascii() and last.isalnum() and kind == "s":
        return f"/api/v1/shared-links/{last}"
    raise bad_arguments(f"{address!r} is no share: want an id, or the address of a shared answer")
