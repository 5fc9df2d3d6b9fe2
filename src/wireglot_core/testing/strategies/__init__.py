"""Hypothesis strategies for conversations, answers and streams. Needs `pip install hypothesis`.

    @given(requests())
    def test_my_middleware_keeps_the_conversation(request): ...

Everything drawn is well formed: turns alternate, results answer calls of the turn before, a stop reason fits
the content, streams satisfy the grammar. `plain=True` stays with what every dialect has (text, function calls
and their results, images, basic settings); `origins` limits whose signatures, extras and foreign parts
appear.
"""

from wireglot_core.testing.strategies.strategies import event_streams, requests, responses

__all__ = ["event_streams", "requests", "responses"]
