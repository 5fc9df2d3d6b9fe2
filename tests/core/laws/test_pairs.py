"""Every ordered pair of dialects: nothing crashes, nothing vanishes, and what goes both ways comes back."""

from collections.abc import Sequence
from typing import get_args

from msgspec.structs import replace

from tests.core.laws.cases import all_hold, every_pair, of_kind, recorded
from tests.tiers import rows
from wireglot_core import StreamTranslator, translate_request, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import NAMES, DialectName, dialect, dialect_name, surface
from wireglot_core.ir.errors import Unsupported
from wireglot_core.ir.loss import Action, Feature, Loss
from wireglot_core.ir.request import Request, Tool
from wireglot_core.ir.stream import Finish, fold
from wireglot_core.providers.limits import DEFAULT_SAMPLING
from wireglot_core.testing.check_dialect import Case
from wireglot_core.testing.conservation import lost
from wireglot_core.testing.laws import (
    crossed_request,
    crossed_response,
    differences,
    ending,
    opened,
    read_stream,
    write_stream,
)
from wireglot_core.traces.canonical import canonical_request

CONTEXT = Context()
FEATURES = frozenset(get_args(Feature))
ACTIONS = frozenset(get_args(Action))


def well_formed(losses: Sequence[Loss]) -> None:
    for loss in losses:
        assert loss.path.startswith("$"), loss
        assert loss.feature in FEATURES, loss
        assert loss.action in ACTIONS, loss
    reported = [
        loss for loss in losses if loss.feature != "foreign_event"
    ]  # of which there may be many alike
    assert len(set(reported)) == len(reported), f"repeated: {reported}"


def request_crosses(case: Case, target: DialectName) -> None:
    source, codec = dialect(case.dialect), dialect(target)
    before = source.parse_request(case.body, CONTEXT)
    try:
        rendered = translate_request(case.body, source=dialect_name(case.dialect), target=target)
    except Unsupported:
        return
    well_formed(rendered.losses)
    after = codec.parse_request(rendered.value, CONTEXT)
    crossed = crossed_request(case.body, case.dialect, target)
    assert crossed.value == rendered.value
    missing = lost(before, after, crossed.losses, target)
    assert not missing, f"{missing}\nlosses: {rendered.losses}"


def request_goes_there_and_back(case: Case, target: DialectName) -> None:
    try:
        there = translate_request(case.body, source=dialect_name(case.dialect), target=target)
        back = translate_request(there.value, source=target, target=dialect_name(case.dialect))
    except Unsupported:
        return
    if there.losses or back.losses:
        return
    codec = dialect(case.dialect)
    before, after = (codec.parse_request(body, CONTEXT) for body in (case.body, back.value))
    if surface(target).reasoning.shows and before.thinking.display is None:
        # What the dialect on the way shows by default is requested on the way back.
        after = replace(after, thinking=replace(after.thinking, display=None))
    assert not differences(
        canonical_request(without_defaults(before)), canonical_request(without_defaults(after))
    )


def without_defaults(request: Request) -> Request:
    """Models that fix their sampling get none: what said only the default is left out without a word. So is a list
    of allowed tools that names all of them."""
    unsaid = {
        name: None for name, value in DEFAULT_SAMPLING.items() if getattr(request.sampling, name) == value
    }
    choice = request.tool_choice
    if choice is not None and set(choice.only) == {
        tool.name for tool in request.tools if isinstance(tool, Tool)
    }:
        request = replace(request, tool_choice=replace(choice, only=()))
    return replace(request, sampling=replace(request.sampling, **unsaid))


def response_crosses(case: Case, target: DialectName) -> None:
    source, codec = dialect(case.dialect), dialect(target)
    rendered = translate_response(case.body, source=dialect_name(case.dialect), target=target)
    well_formed(rendered.losses)
    if source.parse_error(case.body) is not None or codec.parse_error(rendered.value) is not None:
        return
    before = source.parse_response(case.body, CONTEXT)
    after = codec.parse_response(rendered.value, CONTEXT)
    crossed = crossed_response(case.body, case.dialect, target, judged=True)
    assert crossed.value == rendered.value
    missing = lost(before, after, crossed.losses, target)
    assert not missing, f"{missing}\nlosses: {rendered.losses}"


def stream_crosses(case: Case, target: DialectName) -> None:
    source, codec = dialect(case.dialect), dialect(target)
    translator = StreamTranslator(source=dialect_name(case.dialect), target=target)
    data = translator.feed(case.data) + translator.close()
    well_formed(translator.losses)
    before, after = read_stream(source, [case.data]), read_stream(codec, [data])
    if ending(before) is Finish and ending(after) is Finish:
        losses = write_stream(codec, before).losses  # at the places that `fold` gives their parts
        missing = lost(fold(before), opened(fold(after)), losses, target)
        assert not missing, f"{missing}\nlosses: {translator.losses}"
    elif ending(before) is Finish:
        assert fold(before).stop.reason == "malformed_call", "an answer became an error"
    else:
        assert ending(after) is not Finish, "an error became an answer"


def targets_of(case: Case) -> list[str]:
    return [name for name in NAMES if name != case.dialect]


@rows("case", of_kind("requests"))
def test_a_request_keeps_its_content_or_says_so(case):
    """R-DE-17"""
    for target in targets_of(case):
        request_crosses(case, dialect_name(target))


@rows("case", of_kind("responses"))
def test_a_response_keeps_its_content_or_says_so(case):
    """R-DE-17"""
    for target in targets_of(case):
        response_crosses(case, dialect_name(target))


@rows("case", of_kind("streams"))
def test_a_stream_keeps_its_content_or_says_so(case):
    """R-DE-17"""
    for target in targets_of(case):
        stream_crosses(case, dialect_name(target))


OLLAMA = ("ollama", "ollama-generate")


@rows("case", of_kind("errors"))
def test_an_error_stays_an_error_of_its_kind(case):
    """R-DE-17"""
    before = dialect(case.dialect).parse_error(case.body, case.status)
    assert before is not None
    for target in targets_of(case):
        rendered = translate_response(
            case.body, source=case.dialect, target=dialect_name(target), status=case.status
        )
        # In its own family a body passes as it is, and some kinds are told by the status alone; Ollama's
        # bodies are a message and nothing else.
        passes = surface(target).family == surface(case.dialect).family
        status = case.status if passes else surface(target).status(before) if target in OLLAMA else 0
        after = dialect(target).parse_error(rendered.value, status)
        assert after is not None
        assert after.kind == before.kind
        assert before.message in after.message


@rows("case", of_kind("requests"))
def test_a_request_without_losses_goes_there_and_back(case):
    """R-M-02"""
    for target in targets_of(case):
        request_goes_there_and_back(case, dialect_name(target))


@every_pair
def test_recorded_requests_keep_their_content_or_say_so(source, target):
    if target == "ollama-generate":
        return  # one prompt: of a history that `fit` has joined it loses joined texts
    all_hold(recorded(source, "requests"), lambda case: request_crosses(case, target))


@every_pair
def test_recorded_requests_without_losses_go_there_and_back(source, target):
    all_hold(recorded(source, "requests"), lambda case: request_goes_there_and_back(case, target))


@every_pair
def test_recorded_responses_keep_their_content_or_say_so(source, target):
    all_hold(recorded(source, "responses"), lambda case: response_crosses(case, target))


@every_pair
def test_recorded_streams_keep_their_content_or_say_so(source, target):
    all_hold(recorded(source, "streams", 60), lambda case: stream_crosses(case, target))


@every_pair
def test_recorded_errors_become_errors(source, target):
    def law(case: Case) -> None:
        rendered = translate_response(case.body, source=source, target=target, status=case.status)
        assert dialect(target).parse_error(rendered.value) is not None

    all_hold(recorded(source, "errors"), law)
