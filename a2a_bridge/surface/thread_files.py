"""A thread as a file, for its page and for REST."""

from collections.abc import Iterator
from typing import Any

from django.http import StreamingHttpResponse

from a2a_bridge.models import Thread
from a2a_bridge.service.threads.exporting import MEDIA_TYPES, file_name, pieces
from kit.async_db import stream_slices
from kit.concurrency import DOWNLOADS, take_slot

SLICE_CHARS = 256 * 1024


def file_of(request: Any, thread: Thread, form: str, caller_id: int) -> StreamingHttpResponse:
    """A response that is sent while the tasks are read, and that no cache may store. `form`: see `MEDIA_TYPES`.

    Raises:
        TooManyAtOnce: the caller or the process has too many downloads under way.
    """
    take_slot(request, DOWNLOADS, caller_id)
    headers = {
        "Content-Disposition": f'attachment; filename="{file_name(thread, form)}"',
        "Cache-Control": "private, no-store",
    }
    slices = stream_slices(_slices(thread, form))
    return StreamingHttpResponse(slices, content_type=MEDIA_TYPES[form], headers=headers)


def _slices(thread: Thread, form: str) -> Iterator[str]:
    """Join pieces to slices."""
    held: list[str] = []
    size = 0
    for piece in pieces(thread, form):
        held.append(piece)
        size += len(piece)
        if size >= SLICE_CHARS:
            yield "".join(held)
            held, size = [], 0
    yield "".join(held)
