"""How the hub is, for its staff."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from accounts.oauth.pages import signed_in
from hub.health_figures import figures


@never_cache
@gzip_page
@require_safe
def health(request: HttpRequest) -> HttpResponse:
    """The numbers; for all but staff there is nothing here. Its script asks for it again every few seconds."""
    caller = signed_in(request)
    if caller is None or not caller.user.is_staff:
        raise Http404
    return render(request, "health.html", {"now": figures()})
