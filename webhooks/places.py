"""How many deliveries a sender has under way, so that no receiver and no owner holds up the others."""

from collections import Counter

AT_ONCE = 32
EACH_SUBSCRIPTION = 2
EACH_OWNER = 8


class Places:
    """Bounds: in all, to one receiver, of one owner."""

    def __init__(
        self, in_all: int = AT_ONCE, each_receiver: int = EACH_SUBSCRIPTION, each_owner: int = EACH_OWNER
    ) -> None:
        self._left = in_all
        self._each_receiver = each_receiver
        self._each_owner = each_owner
        self._receivers: Counter[int] = Counter()
        self._owners: Counter[int] = Counter()

    @property
    def left(self) -> int:
        """In all."""
        return self._left

    def enter(self, receiver_id: int, owner_id: int) -> bool:
        """Take a place, if there is one for these."""
        if (
            self._left == 0
            or self._receivers[receiver_id] >= self._each_receiver
            or self._owners[owner_id] >= self._each_owner
        ):
            return False
        self._count(receiver_id, owner_id, 1)
        return True

    def leave(self, receiver_id: int, owner_id: int) -> None:
        """Give one back."""
        self._count(receiver_id, owner_id, -1)

    def full_receivers(self) -> list[int]:
        """Those for which there is no place now."""
        return [key for key, taken in self._receivers.items() if taken >= self._each_receiver]

    def full_owners(self) -> list[int]:
        """Those for whom there is no place now."""
        return [key for key, taken in self._owners.items() if taken >= self._each_owner]

    def _count(self, receiver_id: int, owner_id: int, by: int) -> None:
        self._left -= by
        self._receivers[receiver_id] += by
        self._owners[owner_id] += by
