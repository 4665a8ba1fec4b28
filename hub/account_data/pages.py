"""Pages by which users export their account, or erase it."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import path, reverse

from accounts.browser import sign_out
from accounts.groups import find_maintained
from accounts.models import User
from accounts.pages import user_form, user_read
from hub.account_data.erasure import CannotClose, close
from hub.account_data.export import export_of

GONE = "@{login} is erased. Its tokens are refused from now on; the last of its rows goes within minutes."
WRONG_LOGIN = "This is not the login of this account."
WRONG_SLUG = "This is not the short name of this group."


@user_read
def export(request: HttpRequest, me: User) -> HttpResponseBase:
    """The data of the signed-in user, as a file."""
    return export_of(request, me, me.pk)


@user_form
def erase(request: HttpRequest, me: User) -> HttpResponse:
    """The page about erasing; a POST with the login, typed, erases."""
    if request.method != "POST":
        return render(request, "erase.html", {"me": me})
    if request.POST.get("login", "").strip().removeprefix("@") != me.login:
        return render(request, "erase.html", {"me": me, "error": WRONG_LOGIN}, status=400)
    try:
        close(me.pk)
    except CannotClose as cannot:
        return render(request, "erase.html", {"me": me, "error": f"{str(cannot).capitalize()}."}, status=409)
    response = HttpResponseRedirect(reverse("home"))
    sign_out(request, response)
    messages.success(request, GONE.format(login=me.login))
    return response


@user_read
def export_group(request: HttpRequest, me: User, slug: str) -> HttpResponseBase:
    """The data of a group, as a file, for its maintainers."""
    group = find_maintained(me, slug)
    if group is None:
        raise Http404
    return export_of(request, group.account, me.pk)


@user_form
def erase_group(request: HttpRequest, me: User, slug: str) -> HttpResponse:
    """The page about deleting a group, for its maintainers; a POST with the name, typed, deletes."""
    group = find_maintained(me, slug)
    if group is None:
        raise Http404
    if request.method != "POST":
        return render(request, "group_erase.html", {"group": group})
    if request.POST.get("slug", "").strip().removeprefix("@") != group.slug:
        return render(request, "group_erase.html", {"group": group, "error": WRONG_SLUG}, status=400)
    try:
        close(group.pk)
    except CannotClose as cannot:
        return render(request, "group_erase.html", {"group": group, "error": f"{cannot}."}, status=409)
    messages.success(request, f"@{group.slug} is deleted. The last of its rows goes within minutes.")
    return HttpResponseRedirect(reverse("groups"))


page_urlpatterns = [
    path("account/export", export, name="account-export"),
    path("account/erase", erase, name="account-erase"),
    path("groups/<str:slug>/export", export_group, name="group-export"),
    path("groups/<str:slug>/erase", erase_group, name="group-erase"),
]
