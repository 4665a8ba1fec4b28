"""`/files`: the files that a user uploaded to ask with."""

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from accounts.models import User
from accounts.pages import user_page, user_post
from accounts.quotas import MEBIBYTE
from agents import limits
from agents.models import File
from agents.transcript import callers_files, files
from kit.filters import page_of

PER_PAGE = 25


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A row of the list."""

    file: File
    has_preview: bool

    @property
    def is_picture(self) -> bool:
        """True if the list shows the file itself."""
        return self.has_preview and self.file.mime.startswith("image/")


@user_page
def own_files(request: HttpRequest, user: User) -> HttpResponse:
    """The live files of the user, newest first, and how much room they take."""
    found = callers_files.own_files(user.pk).filter(deleted_at=None).select_related("agent").order_by("-pk")
    page = page_of(request, found, PER_PAGE)
    context = {
        "page": page,
        "shown": [ShownFile(one, callers_files.has_preview(one)) for one in page],
        "number": limits.NUMBER_OF_FILES.count_used(user.pk),
        "most": limits.NUMBER_OF_FILES.number,
        "used_mib": round(limits.FILES.count(user.pk) / MEBIBYTE, 1),
    }
    return render(request, "agents/files.html", context)


@user_post
def delete_file(request: HttpRequest, user: User, file_id: int) -> HttpResponse:
    """Delete a file of the user, also from the agent that got the file."""
    file = get_object_or_404(callers_files.own_files(user.pk).select_related("session", "uploader"), pk=file_id)
    files.delete(file)
    messages.success(request, f"Deleted {file.filename}.")
    return HttpResponseRedirect(reverse("own-files"))
