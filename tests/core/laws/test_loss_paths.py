"""A loss points into the client's own document: its path finds something there."""

from typing import Any

import pytest
from hypothesis import given

from tests.core.laws.cases import all_hold, every_dialect, every_pair, of_kind, partners, recorded
from tests.tiers import rows
from wireglot_core import StreamTranslator, translate_request, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.json_path import snake_case
from wireglot_core.dialects.places import RequestPlaces
from wireglot_core.dialects.registry import NAMES, DialectName, dialect, dialect_name, surface
from wireglot_core.ir.content import Media, Part, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.errors import Unsupported
from wireglot_core.ir.grades import GRADES
from wireglot_core.ir.loss import Loss
from wireglot_core.testing.check_dialect import Case
from wireglot_core.testing.strategies.strategies import requests
from wireglot_core.wire.json import encode_text

CONTEXT = Context()


def find(document: Any, path: str) -> Any:
    """What a normalized JSONPath finds; raises where it finds nothing. Not the code that wrote the path."""
    assert path.startswith("$"), path
    rest = path[1:]
    while rest:
        if rest[0] == ".":
            name = rest[1:].split(".")[0].split("[")[0]
            document, rest = document[name], rest[1 + len(name) :]
        elif rest[1] == '"':
            end = rest.index('"]')
            while rest[end - 1] == "\\":
                end = rest.index('"]', end + 1)
            key = next(key for key in document if encode_text(key) == rest[1 : end + 1])
            document, rest = document[key], rest[end + 2 :]
        else:
            number, rest = rest[1:].split("]", 1)
            document = document[int(number)]
    return document


def request_losses_resolve(case: Case, target: DialectName) -> None:
    try:
        losses = translate_request(case.body, source=dialect_name(case.dialect), target=target).losses
    except Unsupported:
        return
    for loss in losses:
        assert loss.document == "request", loss
        assert (loss.feature, loss.action) in GRADES, loss
        path = loss.path
        if loss.action == "invented":  # it is reported where it would stand
            try:
                find(case.body, path)
            except (KeyError, IndexError, TypeError):
                path = path.rpartition(".")[0]
        find(case.body, path)


def response_losses_resolve(case: Case, target: DialectName) -> None:
    rendered = translate_response(
        case.body, source=dialect_name(case.dialect), target=target, status=case.status
    )
    for loss in rendered.losses:
        assert loss.document == "response", loss
        assert (loss.feature, loss.action) in GRADES, loss
        find(rendered.value, loss.path)


def parts_are_found(case: Case) -> None:
    """Every turn, part and tool of a request, whether or not it was lost."""
    spoken = dialect(case.dialect)
    request = spoken.parse_request(case.body, CONTEXT)
    assert spoken.places is not None
    places = RequestPlaces(spoken.places, case.body, request)

    def at(path: str) -> str:
        return places.located([Loss(path, "unknown_field", "dropped")])[0].path

    for number, message in enumerate(request.messages):
        find(case.body, at(f"$.messages[{number}]"))
        for position, part in enumerate(message.content):
            path = at(f"$.messages[{number}].content[{position}]")
            _holds(part, find(case.body, path), path)
    for number, tool in enumerate(request.tools):
        path = at(f"$.tools[{number}]")
        found = find(case.body, path)
        # Some declarations are several tools, and name none of them.
        said = tool.native.type if tool.native is not None else tool.name
        assert said in encode_text(found) or path.endswith((said, snake_case(said))), path


def _holds(part: Part, found: Any, path: str) -> None:
    """What the document has at the path of a part is that part."""
    said = found if isinstance(found, str) else encode_text(found)
    match part:
        case Text() | Reasoning():
            words = part.text
        case ToolCall():
            words = part.id if part.id in said else part.name  # Gemini's need no id, client-run tools no name
        case ToolResult():
            words = part.call_id if part.call_id in said else part.name
        case Media():
            words = part.data or part.url or part.file_id or part.text or ""
            said += said.replace("-", "+").replace("_", "/")  # data may be written in either alphabet
        case _:
            words = part.type
    words = words.split("\n\n")[0][:24]  # summaries of several pieces are joined
    assert words in said or encode_text(words)[1:-1] in said, f"{path}: {words!r} in {said[:200]}"


@rows("case", of_kind("requests"))
def test_every_loss_of_a_request_is_at_a_place_of_the_clients_body(case):
    """[X25]"""
    for target in NAMES:
        if target != case.dialect:
            request_losses_resolve(case, target)


@rows("case", of_kind("responses"))
def test_every_loss_of_an_answer_is_at_a_place_of_the_clients_answer(case):
    """[X25]"""
    for target in NAMES:
        if target != case.dialect:
            response_losses_resolve(case, target)


@rows("case", of_kind("errors"))
def test_every_loss_of_an_error_is_at_a_place_of_the_clients_error(case):
    """[X25]"""
    for target in NAMES:
        if target != case.dialect:
            response_losses_resolve(case, target)


@rows("case", of_kind("streams"))
def test_every_loss_of_a_stream_is_reported_for_the_answer(case):
    """[X25] Where its client puts such things together: no client has a document of the neutral form."""
    for target in NAMES:
        if target == case.dialect:
            continue
        translator = StreamTranslator(source=case.dialect, target=target)
        translator.feed(case.data)
        translator.close()
        for loss in translator.losses:
            assert loss.document == "response"
            assert (loss.feature, loss.action) in GRADES, loss
            assert "others" not in loss.path
            if surface(target).family != "anthropic":
                assert not loss.path.startswith("$.content")


@rows("case", of_kind("requests"))
def test_every_part_of_a_request_is_found_where_the_client_wrote_it(case):
    """[X25]"""
    parts_are_found(case)


@every_pair
def test_losses_of_recorded_requests_are_at_places_of_their_bodies(source, target):
    """[X25]"""
    all_hold(recorded(source, "requests"), lambda case: request_losses_resolve(case, target))


@every_pair
def test_losses_of_recorded_answers_are_at_places_of_the_clients_answer(source, target):
    """[X25]"""
    all_hold(recorded(source, "responses"), lambda case: response_losses_resolve(case, target))


@every_dialect
def test_parts_of_recorded_requests_are_found_where_the_client_wrote_them(name):
    """[X25]"""
    all_hold(recorded(name, "requests"), parts_are_found)


@every_dialect
@given(request=requests())
def test_losses_of_any_request_are_at_places_of_its_body(name, request):
    """[X25]"""
    body = dialect(name).render_request(request, CONTEXT).value
    case = Case("generated", name, body=body)
    parts_are_found(case)
    for target in partners(name):
        request_losses_resolve(case, target)


_HELLO = [{"role": "user", "content": "Hello"}]
_SET: dict[DialectName, dict[str, Any]] = {
    "anthropic": {"max_tokens": 9, "messages": _HELLO, "temperature": 0.25, "top_p": 0.5, "top_k": 3},
    "openai-chat": {
        "messages": _HELLO,
        "temperature": 0.25,
        "top_p": 0.5,
        "top_k": 3,
        "frequency_penalty": 0.75,
        "presence_penalty": 0.125,
        "seed": 4,
        "n": 2,
        "logprobs": True,
        "top_logprobs": 5,
    },
    "openai-responses": {"input": "Hello", "temperature": 0.25, "top_p": 0.5},
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": "Hello"}]}],
        "generationConfig": {
            "temperature": 0.25,
            "topP": 0.5,
            "topK": 3,
            "frequencyPenalty": 0.75,
            "presencePenalty": 0.125,
            "seed": 4,
            "candidateCount": 2,
            "responseLogprobs": True,
            "logprobs": 5,
        },
    },
}


@pytest.mark.parametrize("name", _SET)
def test_a_sampling_setting_is_found_where_its_client_wrote_it(name: DialectName) -> None:
    """[X25] Whichever of them an upstream does not know: the path leads to the value that was lost."""
    spoken, body = dialect(name), {"model": "m", **_SET[name]}
    request = spoken.parse_request(body, CONTEXT)
    assert spoken.places is not None
    places = RequestPlaces(spoken.places, body, request)
    asked = {each: getattr(request.sampling, each) for each in request.sampling.__struct_fields__}
    reported = {each: value for each, value in asked.items() if type(value) in (bool, int, float)}
    assert len(reported) >= 2
    for each, value in reported.items():
        (loss,) = places.located([Loss(f"$.sampling.{each}", "unknown_field", "dropped")])
        assert find(body, loss.path) == value
