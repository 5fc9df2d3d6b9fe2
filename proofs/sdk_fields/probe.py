"""One field more in a request: what becomes of it on the way to every other dialect."""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from proofs.sdk_fields.samples import embed, minimal, sample, samples, spoken, words_of
from proofs.sdk_fields.shapes import Place, fields_of, places, required_of
from proofs.sdk_fields.stages import Document, Endpoint
from wireglot_core.dialects.context import Rendered
from wireglot_core.dialects.registry import DialectName, dialect_name
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.loss import Action
from wireglot_core.translate import translate_request, translate_response
from wireglot_core.wire.json import encode

Verdict = Literal["mapped", "bent", "declared", "refused", "silent"]
MAIN: tuple[DialectName, ...] = (
    *("anthropic", "openai-chat", "openai-responses"),
    *("gemini", "gemini-interactions", "ollama"),
)
_VENDORS = {
    "anthropic": "anthropic",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "gemini": "gemini",
    "gemini-interactions": "gemini",
    "ollama": "ollama",
}
"""Who answers: the dialect's own vendor, so that no clone's limits come on top."""


_NO_WORD = "x_nobody_knows_this"
_MEASURED: dict[str, tuple[Row, ...]] = {}
"""What was measured in this process: a page and a test ask for the same."""
_OUTCOMES: dict[tuple[str, str, bytes], Outcome] = {}
"""Of documents that were translated before: all fields of a structure have the same without the field."""


class Row(NamedTuple):
    structure: str
    field: str
    place: str
    verdicts: dict[DialectName, Verdict]
    """By target."""


class Outcome(NamedTuple):
    value: Any
    losses: tuple[Any, ...]
    refused: str = ""


def rows(endpoint: Endpoint) -> tuple[Row, ...]:
    """Every field that can be asked for, with its verdicts."""
    if endpoint.name not in _MEASURED:
        _MEASURED[endpoint.name] = tuple(_rows(endpoint))
    return _MEASURED[endpoint.name]


def _rows(endpoint: Endpoint) -> Iterator[Row]:
    targets = [name for name in MAIN if name != endpoint.dialect]
    for structure, place in places(endpoint.root, endpoint.echoes).items():
        ladder = _ladder(endpoint, place)
        around = {target: [_outcome(endpoint, target, body) for body in ladder] for target in targets}
        for field, hint in fields_of(structure).items():
            if _names_the_kind(field, hint) or (not place and field in endpoint.echoes):
                continue
            pairs = [
                (present, absent)
                for present, absent in _pairs(endpoint, structure, place, field)
                if not _is_hollow(present, absent)
            ]
            if not pairs:
                continue  # its own fields are asked for below
            verdicts = {target: _judged(endpoint, target, pairs, around[target]) for target in targets}
            yield Row(structure.__name__, field, spelled(place), verdicts)


def unread_words(endpoint: Endpoint) -> Iterator[str]:
    """Words of the SDK's enumerations that fare like a word that nobody knows, as `structure.field=word`: of
    those fields whose words are distinguished at all."""
    for structure, place in places(endpoint.root, endpoint.echoes).items():
        for field, hint in fields_of(structure).items():
            words = list(dict.fromkeys(words_of(hint)))
            if not words or _names_the_kind(field, hint) or (not place and field in endpoint.echoes):
                continue
            companion = endpoint.companions.get(f"{structure.__name__}.{field}", {})
            base = {**_base(endpoint, structure), **companion}
            fates = {
                word: _fates(endpoint, _request(endpoint, place, {**base, field: spoken(hint, word)}), word)
                for word in (*words, _NO_WORD)
            }
            unread = [word for word in words if fates[word] == fates[_NO_WORD]]
            if len(unread) < len(words):
                yield from (f"{structure.__name__}.{field}={word}" for word in unread)


def _fates(endpoint: Endpoint, body: Document, word: str) -> list[str]:
    """What becomes of a document toward each other dialect, whichever word stands in it."""
    of_word = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    targets = [name for name in MAIN if name != endpoint.dialect]
    return [of_word.sub("...", repr(_outcome(endpoint, target, body))) for target in targets]


def _judged(
    endpoint: Endpoint, target: DialectName, pairs: list[tuple[Document, Document]], ladder: list[Outcome]
) -> Verdict:
    """The first value that has an effect tells: another may be what holds anyway."""
    verdict: Verdict = "silent"
    for present, absent in pairs:
        verdict = _verdict(_outcome(endpoint, target, present), _outcome(endpoint, target, absent), ladder)
        if verdict not in ("silent", "refused"):
            break
    return verdict


def _ladder(endpoint: Endpoint, place: Place) -> list[Document]:
    """The request without the structure, without the one around it, and so on."""
    return [_without(endpoint, place[:length]) for length in range(len(place), 0, -1)]


def _without(endpoint: Endpoint, place: Place) -> Document:
    return _request(endpoint, place[:-1], _base(endpoint, place[-2].into) if len(place) > 1 else {})


def _base(endpoint: Endpoint, structure: type) -> Document:
    own = minimal(structure, root=structure is endpoint.root)
    return {**own, **endpoint.companions.get(structure.__name__, {})}


def _names_the_kind(field: str, hint: Any) -> bool:
    return field in ("type", "role", "object") and "Literal" in str(hint)


def _is_hollow(present: Document, absent: Document) -> bool:
    """Whether all that was added is an empty structure: it says nothing yet."""
    return bool(_solid(present) == _solid(absent))


def _solid(value: Any) -> Any:
    if isinstance(value, dict):
        parts = {name: _solid(each) for name, each in value.items()}
        return {name: each for name, each in parts.items() if each not in ({}, [])}
    if isinstance(value, list):
        return [each for each in map(_solid, value) if each not in ({}, [])]
    return value


def spelled(place: Place) -> str:
    return "$" + "".join(f".{step.field}" + "[]" * step.listed for step in place)


def _pairs(
    endpoint: Endpoint, structure: type, place: Place, field: str
) -> Iterator[tuple[Document, Document]]:
    """The same document with the field and without it, or, where it is demanded, with two values of it."""
    hint = fields_of(structure)[field]
    companion = endpoint.companions.get(f"{structure.__name__}.{field}", {})
    base = {**_base(endpoint, structure), **companion}
    if field in required_of(structure):
        own = [base[field]] if base.get(field) else []
        first, *others = [*own, *samples(hint, field), sample(hint, field, other=True)]
        for other in others:
            yield (
                _request(endpoint, place, {**base, field: first}),
                _request(endpoint, place, {**base, field: other}),
            )
        return
    absent = {name: value for name, value in base.items() if name != field}
    own = [base[field]] if field in base else []
    for value in [*own, *samples(hint, field)]:
        yield _request(endpoint, place, {**base, field: value}), _request(endpoint, place, absent)


def _request(endpoint: Endpoint, place: Place, leaf: Document) -> Document:
    if not place:
        return endpoint.stage(copy.deepcopy({**minimal(endpoint.root, root=True), **leaf}))
    root = minimal(endpoint.root, root=True)
    inner = [
        {**_base(endpoint, step.into), **endpoint.companions.get(f"{step.into.__name__}.{after.field}", {})}
        for step, after in itertools.pairwise(place)
    ]
    embed(root, place, leaf, inner)
    return endpoint.stage(copy.deepcopy(root))


def _translated(endpoint: Endpoint, target: DialectName, body: Document) -> Rendered[Any]:
    if endpoint.kind == "answer":
        return translate_response(body, source=dialect_name(endpoint.dialect), target=target, model="model")
    return translate_request(
        body, source=dialect_name(endpoint.dialect), target=target, model="model", provider=_VENDORS[target]
    )


def _outcome(endpoint: Endpoint, target: DialectName, body: Document) -> Outcome:
    key = (endpoint.name, target, encode(body))
    if (known := _OUTCOMES.get(key)) is None:
        known = _OUTCOMES[key] = _new_outcome(endpoint, target, body)
    return known


def _new_outcome(endpoint: Endpoint, target: DialectName, body: Document) -> Outcome:
    try:
        rendered = _translated(endpoint, target, body)
    except WireglotError as error:
        return Outcome(None, (), str(error) or type(error).__name__)
    return Outcome(rendered.value, tuple(rendered.losses))


def _verdict(there: Outcome, gone: Outcome, ladder: list[Outcome]) -> Verdict:
    if there.refused:
        return "refused"
    reported = set(there.losses) - set(gone.losses)
    if there.value != gone.value:
        return "bent" if reported else "mapped"
    if set(there.losses) != set(gone.losses) or any(
        _was_reported(there, without, "dropped") for without in ladder
    ):
        return "declared"
    return "bent" if any(_was_reported(there, without, "approximated") for without in ladder) else "silent"


def _was_reported(there: Outcome, without: Outcome, action: Action) -> bool:
    """Whether a structure around the field is reported as lost or bent, and the field with it."""
    return any(loss.action == action for loss in set(there.losses) - set(without.losses))
