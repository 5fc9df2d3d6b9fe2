"""Streamed arguments are JSON to the client, whatever the model wrote (C10, C11)."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers import rows
from wireglot_core.dialects.anthropic.parts import call_text
from wireglot_core.dialects.argument_stream import ArgumentStream
from wireglot_core.wire.json import BadJson, decode

ODD = (
    '{"a": 1}{"a": 2}',
    '{"a": 1} trailing',
    '{"a": "unfinished',
    '{"a": "back\\',
    '{"a": "uni\\u12',
    '{"a": tru',
    '{"a": -',
    '{"a": 1.',
    '{"a": 1e+',
    '{"a": [1, ',
    '{"a": {"b": 1, ',
    '{"a": {"b"',
    '{"a"',
    '{"a":',
    '{"a": 1, ',
    "{",
    "{}x",
    "[1, 2]",
    '"text"',
    "plain words",
    "{'a': 1}",
    '{"a": 01}',
    '{"a": NaN}',
    '{"a": [}',
    '{"a" 1}',
    '{"a": nul1}',
    '{"a": "\\x"}',
)
REPAIRED = (
    ('{"a": "x\ny"}', '{"a": "x\\u000ay"}'),
    ('{"a": 1}{"a": 1}', '{"a": 1}'),
    ('{"a": 1}}}', '{"a": 1}'),
    ('{"a": 1, }', '{"a": 1}'),
    ('{"a": [1 , ], "b": 2,}', '{"a": [1 ], "b": 2}'),
    ('{}{"a": 1}', '{"a":1}'),
    ('{"a": 1,}}', '{"a": 1}'),
)


def passed_on(text: str, cuts: list[int]) -> str:
    stream = ArgumentStream()
    bounds = [0, *sorted(cuts), len(text)]
    out = [stream.feed(text[start:end]) for start, end in itertools.pairwise(bounds)]
    return "".join(out) + stream.finish()


@rows("text", ODD)
def test_broken_arguments_become_an_object_that_gives_back_the_raw_text(text):
    """R-F-04, R-DB-16, C10"""
    for cuts in ([], list(range(len(text))), [len(text) // 2]):
        value = json.loads(passed_on(text, cuts))
        assert isinstance(value, dict)
        assert call_text(value) == text


@rows(("text", "meant"), REPAIRED)
def test_what_was_plainly_meant_is_repaired_on_the_way(text, meant):
    """[X21] C10: repaired, else wrapped; wherever it is cut."""
    for cuts in ([], list(range(len(text))), *([cut] for cut in range(len(text)))):
        assert passed_on(text, cuts) == meant


def test_a_comma_waits_for_what_follows_it():
    """[X21] It may be one too many, and what has left cannot be taken back."""
    stream = ArgumentStream()
    assert stream.feed('{"a": 1, ') == '{"a": 1'
    assert stream.feed('"b": 2') == ', "b": 2'
    assert stream.feed(",") == ""
    assert stream.feed("}") == ""
    assert stream.finish() == "}"
    assert stream.form == "repaired"


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        ),
    ),
    st.lists(st.integers(0, 40), max_size=4),
    st.booleans(),
)
def test_valid_arguments_pass_unchanged(value, cuts, spaced):
    """R-B-06, R-F-03"""
    text = json.dumps(value, indent=1 if spaced else None, ensure_ascii=spaced)
    assert passed_on(text, [min(cut, len(text)) for cut in cuts]) == text


@given(
    st.text(alphabet='{}[]",:\\ 0123456789.eE+-truefalsn\nu', max_size=24),
    st.lists(st.integers(0, 24), max_size=3),
)
def test_any_text_ends_in_an_object_or_nothing(text, cuts):
    said = passed_on("{" + text, [min(cut, len(text)) for cut in cuts])
    assert isinstance(json.loads(said), dict)


def test_arguments_leave_before_they_are_complete():
    """R-B-10"""
    stream = ArgumentStream()
    assert stream.feed('{"command": "ls') == '{"command": "ls'
    assert stream.feed(' -la"') == ' -la"'
    assert stream.feed("}") == ""
    assert stream.finish() == "}"


def test_no_arguments_stay_no_arguments():
    assert passed_on("", []) == ""
    assert passed_on(" \n", []) == ""


def test_a_brace_inside_is_no_end():
    """C11: a fragment may end with a brace in the middle."""
    stream = ArgumentStream()
    assert stream.feed('{"a": {"b": 1}') == '{"a": {"b": 1}'
    assert stream.feed(', "c": 2}') == ', "c": 2'
    assert stream.finish() == "}"


RICH = (
    ' {"a": "x\\n\\u00e9\\\\\\"/", "n": [0, -1.5e+3, 2E5, 10], "l":[true,false ,null],\n\t"e": {}, "f": [],'
    ' "o": {"p": {"q": [[1], {"r": ""}]}}} '
)
"""Every sort of value, escape and blank that JSON has."""
STRANGERS = 'x\x01,}]:"1{[\\ -.eu\u0661'


def test_arguments_leave_as_soon_as_they_come():
    """R-B-10: held back is only what may turn out to be one too many: a comma, and the last brace."""
    stream, said = ArgumentStream(), ""
    for at, char in enumerate(RICH, start=1):
        said += stream.feed(char)
        come = RICH[:at].lstrip()
        held, whole = come.rstrip(), len(RICH.rstrip())
        come = come[: whole - 2] if at >= whole else come
        assert said == (held[:-1] if held.endswith(",") else come)
    assert stream.finish() == "}"
    assert stream.form == ""
    assert not stream.is_bent


@pytest.mark.sampled(each=5)
@rows("stranger", STRANGERS)
def test_a_stranger_anywhere_is_seen_as_a_decoder_sees_it(stranger):
    """C10: what is JSON passes as it is; what is none gives back the raw text or was plainly meant; and it makes
    no difference how it was cut."""
    for at in range(len(RICH) + 1):
        for text in (
            RICH[:at] + stranger + RICH[at:],
            RICH[:at] + stranger + RICH[at + 1 :],
            RICH[:at] + stranger,
        ):
            stream, whole = ArgumentStream(), ArgumentStream()
            said = "".join(map(stream.feed, text)) + stream.finish()
            assert whole.feed(text) + whole.finish() == said
            assert whole.form == stream.form
            try:
                meant = decode(text)
            except BadJson:
                meant = None
            value = json.loads(said) if said else None
            if type(meant) is dict:
                assert (stream.form, said) == ("", text.strip(" \t\n\r")), text
            elif stream.form == "wrapped":
                assert call_text(value or {}) == text
            elif text.strip() not in ("", "null"):
                assert stream.form == "repaired", text
                assert type(value) is dict
