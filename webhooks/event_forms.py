"""What deliveries of some events have besides what all have; a package above says so when the program starts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class SignHeaders(Protocol):
    """Makes the headers of one attempt. `secrets`: as text, newest first. `moment_s`: now, in Unix seconds."""

    def __call__(self, secrets: Sequence[str], moment_s: int, body: bytes) -> Mapping[str, str]:
        """The headers."""


@dataclass(frozen=True, slots=True)
class EventForm:
    """Further members of the body, by the name of the one whose value they repeat; and further headers."""

    copies: Mapping[str, str]
    headers: SignHeaders


_forms: dict[str, EventForm] = {}


def set_form(event_types: Iterable[str], form: EventForm) -> None:
    """Have deliveries of these events take this form, in this program."""
    _forms.update(dict.fromkeys(event_types, form))


def find_form(event_type: str) -> EventForm | None:
    """The form of an event, if it has one of its own."""
    return _forms.get(event_type)


def join_members(event_type: str, members: Mapping[str, str]) -> str:
    """The members of a body with those that the event's form adds; `members`: JSON by name."""
    form = find_form(event_type)
    copies: Mapping[str, Any] = form.copies if form else {}
    more = {name: members[of] for name, of in copies.items()}
    return ",".join(f'"{name}":{value}' for name, value in {**members, **more}.items())
