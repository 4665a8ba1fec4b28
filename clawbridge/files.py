"""`clawbridge files`: the files that the user sent with questions, or uploaded for them."""

from datetime import datetime

import click
import msgspec

from clawbridge.calls import HubRequest, convert
from clawbridge.lists import local_time
from clawbridge.sign_in import Connect, json_option, with_hub
from clawbridge.terminal import write_json, write_note, write_table

FILES = "/api/v1/files"
MOST = 100


class QuestionFile(msgspec.Struct, frozen=True, rename="camel"):
    """The columns of a file in the list."""

    id: int
    filename: str
    mime: str
    size: int
    uploaded_at: datetime
    deleted_at: datetime | None
    agent: str | None


class FilePage(msgspec.Struct, frozen=True):
    """`GET /api/v1/files`, newest first."""

    items: list[QuestionFile]
    total: int


@click.command()
@click.option("--delete", "number", metavar="ID", type=click.IntRange(1), help="Delete the file ID for good.")
@click.option("--limit", type=click.IntRange(1, MOST), default=20, show_default=True, help="How many to list.")
@click.option("--offset", type=click.IntRange(0), default=0, help="How many newer files to leave out.")
@json_option("Print the hub's answer as one line of JSON.")
@with_hub
def files(number: int | None, limit: int, offset: int, as_json: bool, connect: Connect) -> None:
    """List the files that you sent with questions, newest first, or delete one.

    \b
    Examples:
      clawbridge files
      clawbridge files --delete 12
    """
    with connect() as client:
        if number is not None:
            answer = client.call(HubRequest("DELETE", f"{FILES}/{number}"))
            write_json(answer) if as_json else write_note(f"File {number} is deleted.")
            return
        answer = client.call(HubRequest("GET", FILES, {"limit": limit, "offset": offset}))
        page = convert(client.url, answer, FilePage)
    if as_json:
        write_json(answer)
        return
    rows = [
        [str(one.id), one.filename, one.mime, f"{one.size} bytes", local_time(one.uploaded_at), _state_of(one)]
        for one in page.items
    ]
    if not rows:
        write_note("No file. Ask with one: clawbridge ask @OWNER/SLUG TEXT --file PATH")
        return
    write_table([["ID", "NAME", "TYPE", "SIZE", "UPLOADED", "SENT TO"], *rows])
    if (after := offset + len(rows)) < page.total:
        write_note(f"{len(rows)} of {page.total} files. Older ones: --offset {after}")


def _state_of(file: QuestionFile) -> str:
    if file.deleted_at is not None:
        return "deleted"
    return f"@{file.agent}" if file.agent else "not sent"
