"""An export as a download."""

from django.http import StreamingHttpResponse

from accounts.models import User
from hub.estate.exporting import MEDIA_TYPE, stream
from kit.clock import db_now


def export_of(user: User) -> StreamingHttpResponse:
    """Sent as it is read; kept by no cache."""
    name = f"{user.login}-{db_now():%Y-%m-%d}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-store"}
    return StreamingHttpResponse(stream(user), content_type=MEDIA_TYPE, headers=headers)
