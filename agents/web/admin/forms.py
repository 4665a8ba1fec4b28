"""Filling in a block."""

from typing import ClassVar

from django import forms

from accounts.models import User
from agents.core.halting import NoSuchSubject, Subject, named
from agents.models import Halt
from agents.models.halt import REASON_CHARS
from agents.web.forms import users_of


class BlockForm(forms.ModelForm):  # type: ignore[type-arg]
    """Whom to answer no more. `owner` is the visitor, set by the admin."""

    owner: ClassVar[User]

    login = forms.CharField(max_length=64, help_text="Their asks of your agents and sessions are refused.")

    def clean_login(self) -> User:
        """The user of this login."""
        [caller] = users_of([self.cleaned_data["login"]])
        if caller.pk == self.owner.pk:
            raise forms.ValidationError("This is you.")
        return caller


class HaltForm(forms.ModelForm):  # type: ignore[type-arg]
    """What to halt."""

    kind = forms.ChoiceField(choices=Halt.Kind.choices)
    name = forms.CharField(max_length=128, help_text="The agent's handle, or the login of the owner or caller.")
    reason = forms.CharField(max_length=REASON_CHARS, required=False, help_text="For the record.")

    def clean_name(self) -> Subject:
        """What has the name."""
        try:
            return named(self.cleaned_data.get("kind", ""), self.cleaned_data["name"])
        except NoSuchSubject as unknown:
            raise forms.ValidationError(f"There is {unknown}.") from None
