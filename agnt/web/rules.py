"""`/desk/network/rules`: what a network demands of envelopes, and how long its log is kept."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.models import User
from agents.web.desk import require_owner
from agnt.models import Network
from agnt.networks import MAX_INTERACTIONS_KEPT_DAYS, change_rules, find_network


class RulesForm(forms.ModelForm):  # type: ignore[type-arg]
    """The rules of a network."""

    is_strict = forms.BooleanField(
        label="Refuse payloads with unknown keys",
        required=False,
        help_text="Without this they are dropped, and the log names them.",
    )
    requires_signature = forms.BooleanField(
        label="Require signed payloads",
        required=False,
        help_text="Envelopes without _sig are refused. The signing secret of a key was shown with it.",
    )
    takes_hops = forms.BooleanField(
        label="Accept envelopes that came through other networks",
        required=False,
        help_text="Without this, an envelope with via is refused.",
    )
    interactions_kept_days = forms.IntegerField(
        label="Days to keep the log of envelopes", min_value=1, max_value=MAX_INTERACTIONS_KEPT_DAYS
    )

    class Meta:
        model = Network
        fields = ("is_strict", "requires_signature", "takes_hops", "interactions_kept_days")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@require_owner
def rules(request: HttpRequest, owner: User) -> HttpResponse:
    """The rules of the visitor's network."""
    if request.method != "POST":
        form = RulesForm(instance=find_network(owner) or Network())
        return render(request, "agnt/rules.html", {"form": form})
    form = RulesForm(request.POST)
    if not form.is_valid():
        return render(request, "agnt/rules.html", {"form": form}, status=400)
    change_rules(owner, form.cleaned_data)
    messages.success(request, "The rules are saved.")
    return HttpResponseRedirect(reverse("desk-network-rules"))
