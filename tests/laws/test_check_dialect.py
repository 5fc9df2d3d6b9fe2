"""Our own dialects pass what dialects of others are checked by."""

from functools import partial

import pytest
from msgspec.structs import replace

from tests.laws.cases import FIXTURES, every_dialect
from tests.laws.wires import same_spelling
from wireglot.dialects.openai_chat.tap import ChatTap
from wireglot.dialects.registry import dialect
from wireglot.ir.outcome import Usage
from wireglot.testing import LawsBroken, Samples, check_dialect, samples_in


def some(name: str) -> Samples:
    """The other fixtures are tried by each law's own tests."""
    whole = samples_in(FIXTURES / name)
    kinds = ("requests", "responses", "streams", "errors", "twins")
    return Samples(**{kind: getattr(whole, kind)[:3] for kind in kinds})


@every_dialect
def test_our_own_dialects_keep_every_law(name):
    check_dialect(
        dialect(name),
        some(name),
        spelling=partial(same_spelling, name),
        plain=name != "gemini-simple",
        examples=5,
    )


def test_a_dialect_that_forgets_something_breaks_a_law():
    chat = dialect("openai-chat")

    def forgetful(body, context):
        return replace(chat.parse_request(body, context), tools=())

    with pytest.raises(LawsBroken) as caught:
        check_dialect(replace(chat, parse_request=forgetful), some("openai-chat"), examples=1)
    assert any(line.startswith("identity: requests") for line in caught.value.broken)


def test_a_tap_that_hears_other_numbers_breaks_a_law():
    chat = dialect("openai-chat")

    class Deaf(ChatTap):
        def close(self) -> None:
            super().close()
            self.usage = Usage(input=1)

    deaf = replace(chat, surface=replace(chat.surface, tap=Deaf))
    with pytest.raises(LawsBroken) as caught:
        check_dialect(deaf, some("openai-chat"), examples=1)
    assert all(line.startswith("tap: ") for line in caught.value.broken)


def test_a_check_without_samples_is_none():
    with pytest.raises(LawsBroken, match="there are no requests"):
        check_dialect(dialect("openai-chat"), Samples(), examples=1)
