"""Scripts, style sheets and pictures of the pages."""

from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

WEAK = "W/"


class PlainGzip(GZipMiddleware):
    """Django's compression without random bytes, which hide the length of secrets; static files hold none."""

    max_random_bytes = 0


# Used only for its `process_response`, which compresses; it calls no view.
GZIP = PlainGzip(lambda request: HttpResponse())


class CompressedStaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise that compresses for clients that take gzip.

    All middlewares of a process share the files that the first one found, because tests make one for each client.
    """

    _found: ClassVar[dict[str, Any]] = {}

    def add_files_from_finders(self) -> None:
        """Look for the files once in a process."""
        if not self._found:
            super().add_files_from_finders()
            self._found.update(self.files)
        self.files.update(self._found)

    def serve(self, static_file: StaticFile, request: HttpRequest) -> HttpResponseBase:
        """The file, compressed if the response is the whole file."""
        etag = request.META.get("HTTP_IF_NONE_MATCH", "")
        if etag.startswith(WEAK):  # the ETag of the compressed file
            request.META["HTTP_IF_NONE_MATCH"] = etag.removeprefix(WEAK)
        response: HttpResponseBase = WhiteNoiseMiddleware.serve(static_file, request)
        is_whole = response.status_code == 200 and request.method == "GET"
        return GZIP.process_response(request, response) if is_whole else response
