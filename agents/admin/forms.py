"""Filling in a block."""

from typing import ClassVar

from django import forms

from accounts.models import User
from agents.forms import users_of


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
