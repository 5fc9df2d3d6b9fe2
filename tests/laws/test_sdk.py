"""SDK: the vendor's own SDK accumulates our stream, and reads our response, to the same content we fold."""

import pytest

from tests.laws.cases import MAIN, all_hold, of_kind, recorded
from tests.laws.sdks import RESPONSES, STREAMS, Failed, understood
from wireglot import StreamTranslator, translate_response
from wireglot.dialects.base import Context
from wireglot.dialects.registry import NAMES, dialect
from wireglot.ir.stream import Failure, fold
from wireglot.testing.corpus import Case
from wireglot.testing.laws import ending, opened, read_stream

pytestmark = pytest.mark.filterwarnings("ignore")


def sdk_understands_stream(case: Case, target: str) -> None:
    translator = StreamTranslator(source=case.dialect, target=target)
    data = translator.feed(case.data) + translator.close()
    events = read_stream(dialect(target), [data])
    if ending(events) is Failure:
        with pytest.raises(Failed):
            STREAMS[target](data)
    else:
        assert STREAMS[target](data) == understood(opened(fold(events)))


def sdk_understands_response(case: Case, target: str) -> None:
    codec = dialect(target)
    body = translate_response(case.body, source=case.dialect, target=target).value
    if codec.parse_error(body) is not None:
        return  # what an SDK reads from a status other than 200
    assert RESPONSES[target](body) == understood(opened(codec.parse_response(body, Context())))


@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize("case", of_kind("streams"))
def test_the_sdk_understands_our_stream(case, target):
    sdk_understands_stream(case, target)


@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize("case", of_kind("responses"))
def test_the_sdk_understands_our_response(case, target):
    sdk_understands_response(case, target)


@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize("source", NAMES)
def test_the_sdk_understands_recorded_streams_in_our_translation(source, target):
    all_hold(recorded(source, "streams", 12), lambda case: sdk_understands_stream(case, target))


@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize("source", NAMES)
def test_the_sdk_understands_recorded_responses_in_our_translation(source, target):
    all_hold(recorded(source, "responses", 25), lambda case: sdk_understands_response(case, target))
