"""`GET /connect.pyz`: what a machine with Python alone needs to connect an agent."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from connect import packing


@require_safe
def connect_pyz(request: HttpRequest) -> HttpResponse:
    """The connector of this very hub, as one file. `/desk/connect` shows its SHA-256."""
    etag = f'"{packing.checksum()}"'
    is_known = etag in request.headers.get("If-None-Match", "")
    answer = HttpResponse(b"" if is_known else packing.archive(), status=304 if is_known else 200)
    answer["Content-Type"] = "application/octet-stream"
    answer["Content-Disposition"] = f'attachment; filename="{packing.NAME}"'
    # Checked each time: a cache must not serve another file than the one whose SHA-256 the page shows.
    answer["Cache-Control"] = "public, no-cache"
    answer["ETag"] = etag
    return answer
