"""What `wireglot run` is asked to start, and what it learns from a gateway that runs."""

import json
from typing import Any

import pytest

from wireglot.cli.remote_gateway import GatewayAnswer, address_of
from wireglot.cli.run import launch
from wireglot.cli.run.launch import Joined, Launch
from wireglot.cli.terminal import Failed


class Gateway:
    """Answers in the place of a gateway, and notes what it is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pages: dict[str, tuple[int, Any]]) -> None:
        self.pages = pages
        self.asked: list[tuple[str, dict[str, str]]] = []
        monkeypatch.setattr(launch, "ask", self._ask)
        self.joined = Joined(address_of("http://127.0.0.1:1"))

    def _ask(self, _: Any, method: str, path: str, *, headers: dict[str, str], **__: Any) -> GatewayAnswer:
        assert method == "GET"
        self.asked.append((path, headers))
        status, document = self.pages.get(path, (404, {"error": {"message": f"no {path}"}}))
        return GatewayAnswer(status, {}, json.dumps(document).encode())


def test_the_models_of_a_gateway_are_those_it_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = {"data": [{"id": "a"}, {"no": "id"}, "b", {"id": "c"}]}
    assert Gateway(monkeypatch, {"/v1/models": (200, listed)}).joined.models() == ("a", "c")


@pytest.mark.parametrize("page", [(500, {"data": [{"id": "a"}]}), (200, {"data": {}}), (200, [])])
def test_a_gateway_without_a_list_is_told(monkeypatch: pytest.MonkeyPatch, page: tuple[int, Any]) -> None:
    gateway = Gateway(monkeypatch, {"/v1/models": page})
    with pytest.raises(Failed, match="lists no models"):
        gateway.joined.models()


def test_a_gateway_is_known_by_its_first_page(monkeypatch: pytest.MonkeyPatch) -> None:
    for page, known in (
        ((200, {"name": "wireglot"}), True),
        ((200, {"name": "nginx"}), False),
        ((500, {"name": "wireglot"}), False),
    ):
        assert Gateway(monkeypatch, {"/": page}).joined.is_wireglot() is known


@pytest.mark.parametrize(("status", "wanted"), [(200, False), (401, True), (403, False)])
def test_a_key_is_wanted_where_the_list_is_refused(
    monkeypatch: pytest.MonkeyPatch, status: int, wanted: bool
) -> None:
    assert Gateway(monkeypatch, {"/v1/models": (status, {})}).joined.wants_key() is wanted


def test_a_model_is_asked_for_once_and_its_name_is_part_of_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    page = "/v1/models/a/b%20c%3F"
    gateway = Gateway(monkeypatch, {page: (200, {"max_input_tokens": 9000})})
    assert gateway.joined.refusal("a/b c?") == ""
    assert gateway.joined.context("a/b c?") == 9000
    assert gateway.asked == [(page, {"anthropic-version": "2023-06-01"})]
    assert gateway.joined.refusal("other") == "no /v1/models/other"
    assert gateway.joined.context("other") == 0


@pytest.mark.parametrize("size", [None, "9000", True, 9.5])
def test_a_size_that_is_no_whole_number_is_not_known(monkeypatch: pytest.MonkeyPatch, size: Any) -> None:
    gateway = Gateway(monkeypatch, {"/v1/models/m": (200, {"max_input_tokens": size})})
    assert gateway.joined.context("m") == 0


def test_a_client_keeps_all_arguments_and_a_command_is_the_first_of_them() -> None:
    client = Launch(client="claude", arguments=("-p", "hi"))
    assert (client.program, client.own_arguments) == ("claude", ("-p", "hi"))
    assert (client.dialect, client.problem()) == ("anthropic", "")
    command = Launch(families=("gemini", "openai"), arguments=("python", "x.py"))
    assert (command.program, command.own_arguments, command.own_models) == ("python", ("x.py",), "")
    assert (command.dialect, command.problem()) == ("gemini", "")
    assert Launch(families=("openai",), print_env=True).program == ""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Launch(), "name a client (aider, "),
        (Launch(client="nobody-knows-it"), "there is no client nobody-knows-it: known clients are aider, "),
        (Launch(client="clade"), "did you mean claude?"),
        (Launch(families=("openai",)), "--env needs a command after --"),
        (Launch(families=("openai",), print_env=True), ""),
        (Launch(client="claude", families=("openai",)), "without a CLIENT"),
        (Launch(client="claude", url="x", private=True), "--url and --private exclude each other"),
        (Launch(client="claude", url="x"), ""),
        (Launch(client="claude", private=True), ""),
        (Launch(client="claude", statusline=True), ""),
        (Launch(client="aider", statusline=True), "aider has no configurable status line"),
    ],
)
def test_what_is_wrong_with_a_command_line_is_told(given: Launch, words: str) -> None:
    assert words in given.problem()
    assert bool(given.problem()) is bool(words)
