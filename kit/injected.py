"""A value that a program sets once when it starts, for functions that no constructor could give it to."""

from typing import Generic, TypeVar

T = TypeVar("T")


class Injected(Generic[T]):
    """Holds one value for a whole process. Read it in functions only: at import it is not set yet."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._value: T | None = None

    def set(self, value: T) -> None:
        """Replace the value."""
        self._value = value

    def get(self) -> T:
        """The value.

        Raises:
            LookupError: nothing has set it yet.
        """
        if self._value is None:
            raise LookupError(f"{self._name}: not set yet")
        return self._value
