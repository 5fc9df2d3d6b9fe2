"""Our own dialects pass what dialects of others are checked by."""

from functools import partial

import pytest
from msgspec.structs import replace

from tests.core.laws.cases import FIXTURES, every_dialect
from tests.core.laws.wires import same_spelling
from tests.tiers import WHOLE
from wireglot_core.dialects.context import Rendered
from wireglot_core.dialects.openai_chat.tap import ChatTap
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Usage
from wireglot_core.testing import LawsBroken, Samples, check_dialect, samples_in


def some(name: str, number: int = 3) -> Samples:
    """The other fixtures are tried by each law's own tests, in `make full` all. The shortest streams, since some laws cut them everywhere."""
    whole = samples_in(FIXTURES / name)
    kinds = ("requests", "responses", "errors", "twins")
    return Samples(
        streams=sorted(whole.streams, key=len)[:number],
        **{kind: getattr(whole, kind)[:number] for kind in kinds},
    )


@every_dialect
def test_our_own_dialects_keep_every_law(name):
    """With one fixture of each kind, and with three in `make full`."""
    check_dialect(
        dialect(name),
        some(name, 3 if WHOLE else 1),
        spelling=partial(same_spelling, name),
        plain=name not in ("gemini-simple", "ollama", "ollama-generate"),  # Ollama's have no tool choice
        examples=30 if WHOLE else 4,
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


# --- each law is broken by a dialect that breaks what it is about, and no other law of another kind

CHAT = dialect("openai-chat")


def without(render, field):
    """Leaves a field out and says nothing."""

    def rendered(*given, **options):
        told = render(*given, **options)
        return replace(told, value={name: value for name, value in told.value.items() if name != field})

    return rendered


def complaining(request, context):
    told = CHAT.render_request(request, context)
    return replace(told, losses=(*told.losses, Loss("$.stop", "stop_sequences", "dropped", "it was not")))


def raising(*_, **__):
    raise KeyError("a bug")


class Around:
    """A reader or a writer, but for one method."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)


class Counting(Around):
    calls = 0

    def write(self, events):
        self.calls += 1
        return self._inner.write(events) + b": %d\n\n" % self.calls


class Fragile(Around):
    def read(self, data):
        if b"x" in data:
            raise KeyError("a bug")
        return self._inner.read(data)


class Forgetful(Around):
    def read(self, data):
        return self._inner.read(data)[:1]


def with_surface(codec, **changed):
    return replace(codec, surface=replace(codec.surface, **changed))


STREAM_LAWS = {"identity", "chunking", "fold", "grammar", "truncation", "tap", "ping", "silence"}
CLAUDE = dialect("anthropic")
COUNTS = CLAUDE.surface.counts
assert COUNTS is not None
BROKEN = {
    "a field of a request": (
        replace(CHAT, render_request=without(CHAT.render_request, "tools")),
        {"identity: requests", "silence: requests"},
    ),
    "a field of a response": (
        replace(CHAT, render_response=without(CHAT.render_response, "usage")),
        {"identity: responses", "silence: responses"},
    ),
    "a loss that is none": (
        replace(CHAT, render_request=complaining),
        {"identity: requests", "no loss of plain requests", "silence: requests"},
    ),
    "pieces that depend on calls": (
        replace(CHAT, stream_writer=lambda *given, **more: Counting(CHAT.stream_writer(*given, **more))),
        {"chunking: events one by one"},
    ),
    "errors that cannot be read": (
        replace(CHAT, parse_error=raising),
        {
            *("garbage: errors", "garbage: responses", "glance: responses"),
            *("identity: errors", "identity: responses", "surface: statuses"),
        },
    ),
    "errors of another form": (
        replace(CHAT, render_error=lambda *_: Rendered({"oops": 1})),
        {"identity: errors"},
    ),
    "responses without content": (
        replace(CHAT, parse_response=lambda *given: replace(CHAT.parse_response(*given), content=())),
        {"fold: twins", "identity: responses", "silence: responses"},
    ),
    "a reader that breaks": (
        replace(CHAT, stream_reader=lambda context: Fragile(CHAT.stream_reader(context))),
        {"garbage: frames", "fold: twins", *(f"{law}: streams" for law in STREAM_LAWS - {"fold"})},
    ),
    "a reader that forgets": (
        replace(CHAT, stream_reader=lambda context: Forgetful(CHAT.stream_reader(context))),
        {"fold: twins", *(f"{law}: streams" for law in STREAM_LAWS - {"fold"})},
    ),
    "an error that looks like an answer": (
        with_surface(CHAT, status=lambda _: 200),
        {"surface: statuses"},
    ),
    "a path that leads nowhere": (
        with_surface(CHAT, client=replace(CHAT.surface.client, endpoints=("POST /nowhere",))),
        {"surface: paths"},
    ),
    "a path of another dialect": (
        with_surface(CHAT, client=replace(CHAT.surface.client, endpoints=("POST /v1/messages",))),
        {"surface: paths"},
    ),
    "a family that nobody has": (with_surface(CHAT, family="nobody"), {"surface: paths"}),
    "no ping": (
        with_surface(CHAT, client=replace(CHAT.surface.client, pings={})),
        {"surface: paths", "ping: streams"},
    ),
    "a list without models": (
        with_surface(CHAT, models=replace(CHAT.surface.models, render_list=lambda *_: {})),
        {"surface: models"},
    ),
    "a count that changes": (
        with_surface(
            CLAUDE,
            counts=replace(COUNTS, render_answer=lambda tokens: {"input_tokens": tokens + 1}),
        ),
        {"surface: counts"},
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_dialect_breaks_the_laws_about_it_and_no_others(what):
    codec, laws = BROKEN[what]
    with pytest.raises(LawsBroken) as caught:
        check_dialect(codec, some(codec.name), examples=8)
    told = {":".join(line.split(":")[:2]).partition("[")[0] for line in caught.value.broken}
    assert {law.removesuffix(": AssertionError") for law in told} == laws
