"""A conversation driven through a gateway: doubles behind it, one client before it, turn after turn."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from tests.gateway.state.client_shapes import SHAPES
from tests.gateway.state.doubles import Claude, Double, Gemini, Kimi, OpenAi
from tests.gateway.state.doubles.script import asked
from tests.gateway.state.driver import CLIENTS, UNDEMANDING, Client, Seen
from wireglot.testing.live_gateway import LiveGateway


class Upstream(msgspec.Struct, frozen=True):
    """A double, and the entry of the catalog it stands for."""

    make: Callable[[], Double]
    provider: str
    dialect: str
    base: str
    model: str


_CLAUDE: Final = ("anthropic", "anthropic", "")
_KIMI: Final = ("kimi", "openai-chat", "/v1")

UPSTREAMS: Final = {
    "gemini3": Upstream(Gemini, "gemini", "gemini", "/v1beta", "gemini-3.5-flash"),
    "claude": Upstream(Claude, *_CLAUDE, "claude-sonnet-4-5"),
    "openai": Upstream(OpenAi, "openai", "openai-responses", "/v1", "gpt-5.5"),
    "kimi": Upstream(Kimi, *_KIMI, "kimi-k2.6"),
}
VARIANTS: Final = {
    "claude-adaptive": Upstream(Claude, *_CLAUDE, "claude-opus-5"),
    "claude-interleaved": Upstream(partial(Claude, interleaved=True), *_CLAUDE, "claude-opus-5"),
    "openai-quiet": Upstream(partial(OpenAi, quiet=True), "openai", "openai-responses", "/v1", "gpt-5.5"),
    "unlisted": Upstream(partial(Kimi, lenient=True), "mine", "openai-chat", "/v1", "reasoner-1"),
    "kimi-k3": Upstream(partial(Kimi, recurring=True), *_KIMI, "kimi-k3"),
}
"""Other families of the same providers, with ways of their own."""
_ODD: Final = {
    "refusing": Upstream(
        partial(Kimi, lenient=True, refusing=True), "mine", "openai-chat", "/v1", "reasoner-1"
    ),
}


class House:
    """The doubles of some upstreams and a gateway before them that may be restarted.

    `keys`: how many each upstream has. `models`: further lines of that table.
    """

    def __init__(self, folder: Path, *upstreams: str, keys: int = 1, models: str = "") -> None:
        self.folder = folder
        self.keys = keys
        self.models = models
        self.upstreams = {name: (UPSTREAMS | VARIANTS | _ODD)[name] for name in upstreams}
        self.doubles = {name: upstream.make() for name, upstream in self.upstreams.items()}
        self.gateway: LiveGateway
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for double in self.doubles.values():
            self._stack.enter_context(double)
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gateway.__exit__(kind, problem, trace)
        self._stack.close()

    def restart(self) -> None:
        """Another process with the same configuration and the same data; nothing else is left of the first."""
        self.gateway.__exit__(None, None, None)
        self._start()

    def worker(self) -> LiveGateway:
        """One more process over the same data, as workers of one machine are."""
        return self._made()

    def _start(self) -> None:
        self.gateway = self._made().__enter__()

    def _made(self) -> LiveGateway:
        lines = []
        for name, upstream in self.upstreams.items():
            keys = ", ".join(f'"key-{number}-of-{name}-0123456789"' for number in range(self.keys))
            lines += [
                f"[providers.{upstream.provider}]",
                f'base_url = "{self.doubles[name].url}{upstream.base}"',
                f'dialects = ["{upstream.dialect}"]',
                f"api_keys = [{keys}]",
                "retry = {retries = 0}",
                "breaker = {consecutive = 1000000, minimum = 1000000}",
            ]
        lines.append("[models]")
        lines += [f'"{name}" = "{each.provider}/{each.model}"' for name, each in self.upstreams.items()]
        lines.append(self.models)
        environ = {"XDG_DATA_HOME": str(self.folder)}
        return LiveGateway("\n".join(lines) + "\n", environ=environ)

    def answered(self, seen: Seen) -> str:
        """The upstream that gave an answer, as the gateway tells."""
        provider = seen.headers["x-wireglot-route"].partition("/")[0]
        return next(name for name, each in self.upstreams.items() if each.provider == provider)


class Conversation:
    """One client's. `seen` holds each answer, with the upstream that gave it."""

    def __init__(self, house: House, client: str, model: str) -> None:
        self.token = secrets.token_hex(4)
        self.house = house
        self.model = model
        self.client: Client = ({**CLIENTS, **SHAPES, **UNDEMANDING})[client](model, house.gateway.url)
        self.seen: list[tuple[str, Seen]] = []
        self._questions = 0

    def turn(self, streaming: bool | None = None) -> Seen:
        """One question or one round of results, and the answer; streamed and whole ones in turn."""
        if streaming is None:
            # Not in step with the rounds of the script: each kind of step comes both ways.
            streaming = (len(self.seen) + len(self.seen) // 4) % 2 == 0
        client = self.client
        if client.url != self.house.gateway.url:
            client.url = self.house.gateway.url
        client.model = self.model
        if self.seen and self.seen[-1][1].calls:
            answer = client.give(self.seen[-1][1].calls, streaming)
        else:
            self._questions += 1
            answer = client.say(asked(self.token, self._questions), streaming)
        self.seen.append((self.house.answered(answer), answer))
        return answer

    def turns(self, count: int) -> None:
        for _ in range(count):
            self.turn()

    def assert_faithful(self) -> None:
        """What the client saw is what the doubles said: texts, names, arguments, and ids that are its own."""
        for name, double in self.house.doubles.items():
            said = [each for each in double.said if each.step.conversation == self.token]
            seen = [answer for upstream, answer in self.seen if upstream == name]
            assert [answer.text for answer in seen] == [each.step.text for each in said]
            assert [[(call.name, call.arguments) for call in answer.calls] for answer in seen] == [
                [(call.name, call.arguments) for call in each.step.calls] for each in said
            ]
            if not isinstance(double, Kimi):  # whose ids recur, and are not legal everywhere
                assert [[call.id for call in answer.calls] for answer in seen] == [
                    [*each.ids] for each in said
                ]
        ids = [call.id for _, answer in self.seen for call in answer.calls]
        if "kimi-k3" not in self.house.doubles or self.client.unique_ids:
            assert len({*ids}) == len(ids)
        assert all(0 < len(identifier) <= 64 for identifier in ids)
