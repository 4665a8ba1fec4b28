"""The sockets of one process whose clients have sent no token yet, counted by address."""

from kit.addresses import network_of
from kit.asgi import Scope
from kit.concurrency import ConcurrencyLimit, TooManyAtOnce

PER_ADDRESS = 100  # a waiting socket costs memory: a client without an account must not choose how much


class UnsignedSockets:
    """Counts the sockets of each address that wait for a token, at most `per_address` in this process.

    Behind a trusted proxy the address is the one that the proxy names. A socket enters if its upgrade names no
    token, and leaves when a token comes or the socket closes.
    """

    def __init__(self, per_address: int = PER_ADDRESS) -> None:
        self._addresses: dict[object, str] = {}
        self._open = ConcurrencyLimit("sockets without a token", per_account=per_address)

    def enter(self, socket: object, scope: Scope) -> bool:
        """Count a socket; False when its address has `per_address` already. A second call does nothing."""
        if socket in self._addresses:
            return True
        client = scope.get("client")
        address = network_of(str(client[0]) if client else "")
        try:
            self._open.enter(address)
        except TooManyAtOnce:
            return False
        self._addresses[socket] = address
        return True

    def leave(self, socket: object) -> None:
        """Stop counting a socket, which has signed in or closed. A second call does nothing."""
        if socket in self._addresses:
            self._open.leave(self._addresses.pop(socket))
