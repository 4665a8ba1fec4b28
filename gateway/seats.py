"""The seats of one process, by team and name: what is addressed to them needs no look into the database."""

from gateway.seat import Seat


class Seats:
    """The seats whose connections this process holds; a newer connection replaces an older one."""

    def __init__(self) -> None:
        self._seats: dict[tuple[int, str], Seat] = {}

    def enter(self, owner_id: int, seat: Seat) -> None:
        """A connection has taken its seat."""
        self._seats[owner_id, seat.name] = seat

    def leave(self, owner_id: int, seat: Seat) -> None:
        """A connection is over. That of a newer one stays."""
        if self._seats.get((owner_id, seat.name)) is seat:
            del self._seats[owner_id, seat.name]

    def find(self, owner_id: int, name: str) -> Seat | None:
        """The seat of an agent of a team; None when this process does not hold it."""
        return self._seats.get((owner_id, name))
