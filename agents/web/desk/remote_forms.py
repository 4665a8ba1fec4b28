"""The forms of a remote A2A server: where it is, as whom the hub calls it, and the agent it becomes."""

from typing import Any, ClassVar, cast

from django import forms
from django.forms.models import modelform_factory

from agents.links.remote.access import MAX_CREDENTIALS_CHARS, NO_AUTH, Auth, BadAuth, make_auth
from agents.links.remote.signatures import MAX_KEYS_CHARS, BadKey, read_keys_text
from agents.models import Agent
from agents.models.remote import MAX_SCHEME_CHARS, MAX_URL_CHARS
from agents.transcript.pieces import Json
from agents.web.desk.forms import DeskForm
from agents.web.forms import EDITABLE


class PlaceForm(forms.Form):
    """Where a server is. Credentials are never sent back to the page."""

    card_url = forms.CharField(
        label="Agent card",
        max_length=MAX_URL_CHARS,
        widget=forms.URLInput(attrs={"placeholder": "https://agents.example.org/weather"}),
        help_text="The URL of its agent card, or one above /.well-known/agent-card.json.",
    )
    auth_scheme = forms.CharField(
        label="Scheme", required=False, max_length=MAX_SCHEME_CHARS, help_text="Such as Bearer. Empty: none."
    )
    credentials = forms.CharField(
        required=False,
        max_length=MAX_CREDENTIALS_CHARS,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="Sealed in the database, sent to the card's host alone, shown never again, not even here.",
    )

    card_keys = forms.CharField(
        label="Pinned keys",
        required=False,
        max_length=MAX_KEYS_CHARS,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "mono"}),
        help_text="A public JWK or a JWK Set. One of the keys signs the card, or nothing is asked. Empty: the hub "
        "does not look at signatures.",
    )

    tells_caller = forms.BooleanField(
        label="Tell it who asks",
        required=False,
        help_text="Each request to this server then holds the caller's login and the agent's handle, signed by "
        "the hub, in the header Clawbridge-Caller.",
    )

    typed_auth: Auth = NO_AUTH

    def clean_card_keys(self) -> list[Json]:
        """Public keys."""
        try:
            return read_keys_text(self.cleaned_data["card_keys"])
        except BadKey as bad:
            raise forms.ValidationError(f"{bad}.") from None

    def clean(self) -> dict[str, Any]:
        """Make an Auth of the two."""
        super().clean()
        cleaned: dict[str, Any] = self.cleaned_data
        try:
            self.typed_auth = make_auth(cleaned.get("auth_scheme", ""), cleaned.get("credentials", ""))
        except BadAuth as bad:
            self.add_error("credentials", f"{bad}.")
        return cleaned


class MovedForm(PlaceForm):
    """The same for a server that is there: its credentials stay unless new ones are given, or none wanted."""

    KEEP, NEW, NONE = "keep", "new", "none"
    CHOICES: ClassVar[list[tuple[str, str]]] = [
        (KEEP, "As they are"),
        (NEW, "New ones, as below"),
        (NONE, "None"),
    ]

    auth = forms.ChoiceField(label="Which credentials", choices=CHOICES, initial=KEEP, widget=forms.RadioSelect)

    def clean(self) -> dict[str, Any]:
        """What is typed counts when it is chosen, and only then."""
        cleaned = super().clean()
        is_typed, is_chosen = bool(self.typed_auth.scheme), cleaned.get("auth") == self.NEW
        if is_chosen and not is_typed and not self.errors:
            self.add_error("credentials", "Want a scheme and credentials.")
        if is_typed and not is_chosen:
            self.add_error("auth", "There are new ones below: choose them, or empty the fields.")
        return cleaned

    @property
    def wanted_auth(self) -> Auth | None:
        """None: as they are."""
        return {self.KEEP: None, self.NONE: NO_AUTH}.get(self.cleaned_data["auth"], self.typed_auth)


class NewRemoteForm(DeskForm):
    """The settings of the agent that a remote server becomes."""

    slug = forms.CharField(
        required=False,
        max_length=64,
        help_text="The handle is your login, a slash and this, for good. Empty: as the card's name.",
    )

    class Meta(DeskForm.Meta):
        pass


def new_remote_form() -> type[NewRemoteForm]:
    """The class of that form."""
    return cast(type[NewRemoteForm], modelform_factory(Agent, form=NewRemoteForm, fields=EDITABLE))
