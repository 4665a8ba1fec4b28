"""Scripts, style sheets and pictures of the pages."""

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

WEAK = "W/"


class CompressedStaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise that compresses for clients that take gzip. The files hold nothing secret."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        super().__init__(get_response)
        self._gzip = GZipMiddleware(get_response)

    def serve(self, static_file: StaticFile, request: HttpRequest) -> HttpResponseBase:
        """The file, compressed unless only a part of it, or none, is asked for."""
        etag = request.META.get("HTTP_IF_NONE_MATCH", "")
        if etag.startswith(WEAK):  # the compressed file's
            request.META["HTTP_IF_NONE_MATCH"] = etag.removeprefix(WEAK)
        response: HttpResponseBase = WhiteNoiseMiddleware.serve(static_file, request)
        is_whole = response.status_code == 200 and request.method == "GET"
        return self._gzip.process_response(request, response) if is_whole else response
