"""`/desk/network/venues/import` and `/desk/network/venues.csv`: venues from a file, and as one."""

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.utils.text import capfirst
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.models import User
from accounts.quotas import QuotaExceeded
from agents.web.desk import owner_form, require_owner
from agnt.models import Network
from agnt.service.networks import find_network, get_or_create_network
from agnt.service.venues.fields import TAG_SEPARATOR
from agnt.service.venues.file import COLUMNS, MAX_ROWS, BadFile, export_venues
from agnt.service.venues.importing import BAD_ROWS_NAMED, ImportReport, import_venues
from kit.async_db import stream_slices
from kit.concurrency import DOWNLOADS, take_slot


class ImportForm(forms.Form):
    """A file of venues."""

    file = forms.FileField(
        label="CSV file", allow_empty_file=True, widget=forms.FileInput(attrs={"accept": ".csv"})
    )
    skips_bad_rows = forms.BooleanField(
        label="Leave wrong rows out",
        required=False,
        help_text="Without this, nothing is written when a row is wrong.",
    )

    def run(self, owner: User) -> ImportReport | None:
        """Import the file; None: the hub could not read the file, and the form has the error."""
        file, skips_bad_rows = self.cleaned_data["file"].file, self.cleaned_data["skips_bad_rows"]
        try:
            return import_venues(get_or_create_network(owner), file, skips_bad_rows=skips_bad_rows)
        except BadFile as bad:
            self.add_error("file", f"Nothing was imported. {capfirst(str(bad))}.")
        except QuotaExceeded as over:
            self.add_error("file", f"Nothing was imported: {over}.")
        return None


@owner_form
def import_file(request: HttpRequest, owner: User) -> HttpResponse:
    """The form; after a POST with the report of the file."""
    form = ImportForm(request.POST, request.FILES) if request.method == "POST" else ImportForm()
    report = form.run(owner) if form.is_bound and form.is_valid() else None
    context = {
        "form": form,
        "report": report,
        "columns": ", ".join(COLUMNS),
        "most_rows": f"{MAX_ROWS:,}",
        "most_bad_rows": BAD_ROWS_NAMED,
        "separator": TAG_SEPARATOR,
    }
    is_refused = form.is_bound and (report is None or not report.is_done)
    return render(request, "agnt/venues_import.html", context, status=400 if is_refused else 200)


@never_cache
@require_safe
@require_owner
def as_csv(request: HttpRequest, owner: User) -> HttpResponseBase:
    """All venues, as a file that the import takes."""
    take_slot(request, DOWNLOADS, owner.pk)
    headers = {"Content-Disposition": 'attachment; filename="venues.csv"'}
    slices = stream_slices(export_venues(find_network(owner) or Network()))
    return StreamingHttpResponse(slices, content_type="text/csv; charset=utf-8", headers=headers)
