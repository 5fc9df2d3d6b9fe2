"""Stop sequences for an upstream that never tells whether one of them ended the answer."""

from __future__ import annotations

from collections.abc import Iterator

from wireglot.dialects.surface import Surface
from wireglot.ir.loss import Loss
from wireglot.ir.request import Request


def untold_sequence(request: Request, client: Surface | None, server: Surface) -> Iterator[Loss]:
    """Told with the request: from the answer nobody knows it any more. The text that was cut off is not in
    it, so it cannot be found here either."""
    expected = client is not None and client.stop_sequences == "told"
    if request.stop and expected and server.stop_sequences == "hidden":
        detail = "whether one of them ended the answer, and which, is not told upstream"
        yield Loss("$.stop", "stop_sequence", "approximated", detail)
