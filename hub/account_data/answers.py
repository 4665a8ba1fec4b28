"""An export as a download."""

from typing import Any

from django.http import StreamingHttpResponse

from accounts.models import User
from hub.account_data.exporting import MEDIA_TYPE, stream
from kit.clock import db_now
from kit.concurrency import DOWNLOADS, take_slot


def export_of(request: Any, user: User, caller_id: int) -> StreamingHttpResponse:
    """Sent as it is read; kept by no cache.

    Raises:
        TooManyAtOnce: the caller, or the process, has as many downloads under way as it may.
    """
    take_slot(request, DOWNLOADS, caller_id)
    name = f"{user.login}-{db_now():%Y-%m-%d}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-store"}
    return StreamingHttpResponse(stream(user), content_type=MEDIA_TYPE, headers=headers)
