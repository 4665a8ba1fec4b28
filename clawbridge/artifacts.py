"""`clawbridge artifacts`: lists the files that an agent made for a task, and saves them."""

import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit
from uuid import uuid4

import click
import httpx2

from clawbridge import VERSION
from clawbridge.client import CONNECT_WITHIN_S, SILENT_FOR_S
from clawbridge.completion import complete_task
from clawbridge.shapes import ArtifactFile
from clawbridge.sign_in import Connect, json_option, with_hub
from clawbridge.terminal import (
    CommandFailure,
    ExitCode,
    bad_arguments,
    end,
    one_line,
    report,
    write_json,
    write_note,
    write_table,
)

SHOWN = 100
SHOWS_PROGRESS_BYTES = 1024 * 1024


@click.command()
@click.argument("task", shell_complete=complete_task)
@click.option(
    "--save",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Save the files in this folder, which is made if absent. Their paths are printed.",
)
@click.option(
    "--links", is_flag=True, help="With --save: download files that the agent only names by address, too."
)
@click.option("--overwrite", is_flag=True, help="With --save: replace files of the same name.")
@click.option("--limit", type=click.IntRange(1), help=f"How many files: {SHOWN} of a list, else all.")
@click.option("--offset", type=click.IntRange(0), default=0, help="How many to leave out.")
@json_option("Print the files as one line of JSON, without their content.")
@with_hub
def artifacts(
    task: str,
    folder: Path | None,
    links: bool,
    overwrite: bool,
    limit: int | None,
    offset: int,
    as_json: bool,
    connect: Connect,
) -> None:
    """List the files that an agent made for a task, or save them with --save DIR.

    TASK: an id that `clawbridge tasks` lists. Texts and data are files too. A file has its agent's name for it,
    without folders, and without letters that are not safe in names. Nothing is replaced without --overwrite.

    \b
    Examples:
      clawbridge artifacts task-4f1c
      clawbridge artifacts task-4f1c --save results
    """
    if folder is None and (links or overwrite):
        raise bad_arguments("--links and --overwrite need --save DIR")
    with connect() as client:
        handle = client.agent_of(task)
        files = client.artifacts(task, agent=handle)
    chosen = files[offset:][: limit or (SHOWN if folder is None else None)]
    last = offset + len(chosen)
    items = [described(one) for one in chosen]
    code = ExitCode.COMPLETED
    if folder is not None:
        code = save_all(chosen, items, folder, follows_links=links, overwrites=overwrite)
    if as_json:
        write_json({"taskId": task, "agent": handle, "items": items, "total": len(files)})
    elif folder is not None:
        for item in items:
            if "path" in item:
                click.echo(item["path"])
    elif items:
        rows = [[one["name"], one["mediaType"], size_of(one), one["artifactId"]] for one in items]
        write_table([["FILE", "TYPE", "BYTES", "ARTIFACT"], *rows])
    if not files:
        write_note("The task has no artifacts.")
    elif last < len(files):
        write_note(f"{last} of {len(files)} files; --offset {last} continues")
    end(code)


def described(file: ArtifactFile) -> dict[str, Any]:
    """A file as JSON. `bytes`: null while it is elsewhere."""
    size = None if file.content is None else len(file.content)
    shown = {"artifactId": file.artifact_id, "name": file.name, "mediaType": file.media_type, "bytes": size}
    return shown | ({"url": file.url} if file.url else {})


def size_of(item: dict[str, Any]) -> str:
    """The text of the column with the size."""
    return "at " + item["url"] if item["bytes"] is None else str(item["bytes"])


def save_all(
    files: list[ArtifactFile], items: list[dict[str, Any]], folder: Path, *, follows_links: bool, overwrites: bool
) -> ExitCode:
    """Write the files, and add to each item where it is. A link that fails does not keep the others."""
    wanted = [file for file in files if file.content is not None or follows_links]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise bad_arguments(f"cannot make {folder}: {problem.strerror}") from None
    if not overwrites:
        check_free(folder, wanted)
    code = ExitCode.COMPLETED
    for file, item in zip(files, items, strict=True):
        path = folder / file.name
        if file.content is None and not follows_links:
            write_note(f"{file.name} is at {one_line(file.url)}: --links downloads it")
            continue
        try:
            save(path, partial(write_content, file), overwrites=overwrites)
        except CommandFailure as failure:
            if file.content is not None:
                raise
            report(f"{file.name}: {failure.message}")
            code = ExitCode.UNREACHABLE
            continue
        item |= {"path": str(path), "bytes": path.stat().st_size}
    return code


def write_content(file: ArtifactFile, target: BinaryIO) -> None:
    """Write the content of a file; of one elsewhere while it arrives, on a terminal with its progress."""
    if file.content is not None:
        target.write(file.content)
        return
    with download(file.url) as (size, pieces):
        is_shown = sys.stderr.isatty() and (size is None or size >= SHOWS_PROGRESS_BYTES)
        bar = click.progressbar(length=size or 0, label=one_line(file.name), file=sys.stderr, hidden=not is_shown)
        with bar:
            for piece in pieces:
                target.write(piece)
                bar.update(len(piece))


def check_free(folder: Path, files: Sequence[ArtifactFile]) -> None:
    """Check that none of the files is in the folder.

    Raises:
        CommandFailure: a file of that name is there.
    """
    for file in files:
        if os.path.lexists(folder / file.name):
            raise taken_already(folder / file.name)


def taken_already(path: Path) -> Exception:
    """The failure when a file exists and may not be replaced."""
    return bad_arguments(f"{path} is there already: --overwrite replaces it")


def save(path: Path, write: Callable[[BinaryIO], None], *, overwrites: bool) -> None:
    """Write a file under another name, and rename it once it is whole. A symbolic link is replaced, not followed.

    Raises:
        CommandFailure: the file cannot be written, or is there and may not be replaced.
    """
    part = path.with_name(f".clawbridge-{uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            write(file)
        if not overwrites:
            path.open("xb").close()
        os.replace(part, path)
    except FileExistsError:
        raise taken_already(path) from None
    except OSError as problem:
        raise bad_arguments(f"cannot write {path}: {problem.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


MAX_DOWNLOAD_BYTES = 4 * 1024**3


@contextmanager
def download(url: str) -> Generator[tuple[int | None, Iterator[bytes]]]:
    """A file that an agent names by its address: its size, if known, and its pieces. No token is sent.

    Raises:
        CommandFailure: the address is none of the web, or the file does not arrive, or is over MAX_DOWNLOAD_BYTES.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise CommandFailure(ExitCode.UNREACHABLE, f"{one_line(url)} is not downloaded: want http or https")
    timeout = httpx2.Timeout(SILENT_FOR_S, connect=CONNECT_WITHIN_S)
    headers = {"User-Agent": f"clawbridge/{VERSION}"}
    try:
        with httpx2.stream("GET", url, headers=headers, timeout=timeout, follow_redirects=True) as response:
            if not response.is_success:
                raise CommandFailure(ExitCode.UNREACHABLE, f"{one_line(url)} answered HTTP {response.status_code}")
            length = response.headers.get("Content-Length", "")
            is_plain = length.isdecimal() and "Content-Encoding" not in response.headers
            yield int(length) if is_plain else None, bounded(response.iter_bytes())
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        why = str(problem) or type(problem).__name__
        raise CommandFailure(ExitCode.UNREACHABLE, f"no file from {one_line(url)}: {why}") from None


def bounded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces of a file that is not too large.

    Raises:
        CommandFailure: the file is over MAX_DOWNLOAD_BYTES.
    """
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > MAX_DOWNLOAD_BYTES:
            raise CommandFailure(ExitCode.UNREACHABLE, f"over {MAX_DOWNLOAD_BYTES} bytes, which is the most")
        yield piece
