"""What a context gives a codec from the cache, and that nothing differs where there is none."""

from __future__ import annotations

import msgspec

from wireglot_core.cache.memory import Memory
from wireglot_core.dialects.context import Context
from wireglot_core.ir.loss import Loss
from wireglot_core.wire.json import encode

_LOSS = Loss("$.tools", "tool.schema", "dropped", "no place")


def test_what_was_written_is_written_once() -> None:
    memory = Memory(1024 * 1024)
    context = Context(memory=memory)
    source = memory.decode(b"[1]")
    raw = context.as_json(source, "k", [{"é": 1}])
    assert isinstance(raw, msgspec.Raw)
    assert encode({"a": raw}) == encode({"a": [{"é": 1}]})
    assert context.as_json(source, "k", "not looked at") is raw
    unknown = [2]
    assert context.as_json(unknown, "k", unknown) is unknown


def test_without_a_cache_everything_is_made() -> None:
    context, value = Context(), [2]
    assert context.as_json([1], "k", value) is value
    assert context.remembered([1], "k", lambda: 7) == 7
    assert context.share(value, [1]) is value


def test_losses_are_reported_each_time() -> None:
    memory = Memory(1024 * 1024)
    source = memory.decode(b"[1]")
    rendered: list[int] = []

    def render(losses: list[Loss]) -> str:
        rendered.append(len(losses))
        losses.append(_LOSS)
        return "tools"

    for context, times in ((Context(), 2), (Context(memory=memory), 1)):
        rendered.clear()
        for _ in range(2):
            losses: list[Loss] = []
            assert context.rendered_once(source, "k", render, losses) == "tools"
            assert losses == [_LOSS]
        assert rendered == [0] * times
