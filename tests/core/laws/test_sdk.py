"""SDK: the vendor's own SDK accumulates our stream, and reads our response, to the same content we fold."""

from base64 import b64decode

import pytest

from tests.core.laws.cases import MAIN, PAIRS, all_hold, of_kind, recorded
from tests.core.laws.sdks import RESPONSES, STREAMS, Failed, Understood, understood
from tests.tiers import rows
from wireglot_core import StreamTranslator, translate_response
from wireglot_core.dialects.arguments import PARSE_ERROR, RAW, arguments_object
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName, dialect, dialect_name
from wireglot_core.ir.content import Media
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.stream import Failure, fold
from wireglot_core.testing.check_dialect import Case
from wireglot_core.testing.laws import ending, opened, read_stream

pytestmark = pytest.mark.filterwarnings("ignore")


def sdk_understands_stream(case: Case, target: DialectName) -> None:
    translator = StreamTranslator(source=dialect_name(case.dialect), target=target)
    data = translator.feed(case.data) + translator.close()
    events = read_stream(dialect(target), [data])
    if ending(events) is Failure:
        with pytest.raises(Failed):
            STREAMS[target](data)
    else:
        folded = fold(events)
        if sound(folded):
            assert unwrapped(STREAMS[target](data)) == unwrapped(understood(opened(folded)))


def sdk_understands_response(case: Case, target: DialectName) -> None:
    codec = dialect(target)
    body = translate_response(case.body, source=dialect_name(case.dialect), target=target).value
    if codec.parse_error(body) is not None:
        return  # what an SDK reads from a status other than 200
    response = codec.parse_response(body, Context())
    if sound(response):
        assert unwrapped(RESPONSES[target](body)) == unwrapped(understood(opened(response)))


def unwrapped(answer: Understood) -> Understood:
    """Arguments that are no JSON object count as the text they are, wrapped or not."""
    calls = []
    for name, arguments in answer.calls:
        wrapped = arguments_object(arguments)
        calls.append((name, wrapped[RAW] if RAW in wrapped and PARSE_ERROR in wrapped else arguments))
    return Understood(answer.prose, answer.reasoning, tuple(calls))


def sound(response: Response) -> bool:
    """Some recordings hold pictures whose base64 was damaged: google-genai refuses those, as it should."""
    try:
        for part in response.content:
            if isinstance(part, Media) and part.data is not None:
                b64decode(part.data, validate=True)
    except ValueError:
        return False
    return True


# A recording in its own dialect comes back as it was: what an SDK makes of a host's oddities is not our doing.
SDK_PAIRS = [(source, target) for source, target in PAIRS if target in MAIN]


@pytest.mark.sampled("case.dialect", "target", each=3)
@rows("target", MAIN)
@rows("case", of_kind("streams"))
def test_the_sdk_understands_our_stream(case, target):
    sdk_understands_stream(case, target)


@pytest.mark.sampled("case.dialect", "target", each=5)
@rows("target", MAIN)
@rows("case", of_kind("responses"))
def test_the_sdk_understands_our_response(case, target):
    sdk_understands_response(case, target)


@rows(("source", "target"), SDK_PAIRS)
def test_the_sdk_understands_recorded_streams_in_our_translation(source, target):
    all_hold(recorded(source, "streams", 12), lambda case: sdk_understands_stream(case, target))


@rows(("source", "target"), SDK_PAIRS)
def test_the_sdk_understands_recorded_responses_in_our_translation(source, target):
    all_hold(recorded(source, "responses", 25), lambda case: sdk_understands_response(case, target))
