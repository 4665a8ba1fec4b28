"""Scripts, style sheets and pictures of the pages."""

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

WEAK = "W/"
GZIP = GZipMiddleware(lambda request: HttpResponse())  # for its way to compress a response; it calls no view


class CompressedStaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise that compresses for clients that take gzip. The files hold nothing secret.

    The middleware looks for the files at the first request for one, and keeps what it found: a hub starts sooner,
    and a test that makes many clients does not look for all files with each.
    """

    _has_files = False

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """A file, or what the rest of the hub answers."""
        if not self._has_files and request.path_info.startswith(self.static_prefix):
            super().add_files_from_finders()  # threads that look at the same time find the same
            self._has_files = True
        answer: HttpResponseBase = super().__call__(request)
        return answer

    def add_files_from_finders(self) -> None:
        """Nothing: `__call__` looks for them."""

    def serve(self, static_file: StaticFile, request: HttpRequest) -> HttpResponseBase:
        """The file, compressed unless only a part of it, or none, is asked for."""
        etag = request.META.get("HTTP_IF_NONE_MATCH", "")
        if etag.startswith(WEAK):  # the compressed file's
            request.META["HTTP_IF_NONE_MATCH"] = etag.removeprefix(WEAK)
        response: HttpResponseBase = WhiteNoiseMiddleware.serve(static_file, request)
        is_whole = response.status_code == 200 and request.method == "GET"
        return GZIP.process_response(request, response) if is_whole else response
