"""What one request holds of the process's memory, beside its body: what is made of it, and its answer."""

from __future__ import annotations

from wireglot.gateway.entry.gates import shed
from wireglot.http.account import ByteAccount


class Held:
    """Counted until the request is through, on the loop alone: two threads must not count at once.

    Raises a RequestError where there is no room: its caller is told to come back, and everybody else's work
    goes on.
    """

    __slots__ = ("_account", "_bytes", "_lasting")

    def __init__(self, account: ByteAccount) -> None:
        self._account = account
        self._bytes = 0
        self._lasting: int | None = None
        """What stays, whichever attempt it is."""

    def another(self) -> Held:
        """For a request that lives on its own."""
        return Held(self._account)

    def take(self, size: int) -> None:
        account = self._account
        account.held += size
        self._bytes += size
        if account.lacks(0):
            account.shed += 1
            raise shed("the gateway holds as many bytes as it may")

    def attempt(self, size: int) -> None:
        """So much goes out now, in the place of what an attempt before this one held."""
        if self._lasting is None:
            self._lasting = self._bytes
        if self._bytes != self._lasting:
            self._give(self._bytes - self._lasting)
        self.take(size)

    def close(self) -> None:
        self._give(self._bytes)

    def _give(self, size: int) -> None:
        self._account.held -= size
        self._bytes -= size
