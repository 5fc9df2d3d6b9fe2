"""Recorded traffic in all directions: what is lost in silence, what could have been kept, what comes back.

`python -m tools.fidelity.corpus FOLDER [--limit N]` prints three figures and what is behind them.
"""

from __future__ import annotations

import argparse
import gzip
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tools.fidelity.ablation import Kind, Silent, silent_fields
from tools.fidelity.matrix import DIRECTIONS, grade_request, said_back, title
from tools.fidelity.request_probes import REQUESTS
from wireglot.dialects.base import Context
from wireglot.dialects.registry import DialectName, dialect, dialect_name
from wireglot.ir.content import Message, Text, ToolCall, ToolResult
from wireglot.ir.errors import WireglotError
from wireglot.ir.loss import Feature, Loss
from wireglot.ir.request import Request
from wireglot.testing.canonical import canonical_request
from wireglot.testing.fixtures import Case
from wireglot.testing.laws import differences
from wireglot.testing.strategies.samples import MAIN
from wireglot.translate import translate_request, translate_response
from wireglot.wire.json import decode, encode

KINDS: tuple[Kind, ...] = ("requests", "responses", "streams")
_CONTEXT = Context()
_SHOWN = 12
_NEEDED: frozenset[Feature] = frozenset({"tool.schema", "output_format.schema", "max_tokens", "model"})
"""Losses that depend on what a schema holds, or on what the target demands."""


class Figures(NamedTuple):
    crossings: int
    silent: list[Silent]
    avoidable: Counter[str]
    imperfect: int
    trips: int
    same: int
    told: int
    unsaid: list[str]


def cases(folder: Path, kind: Kind, limit: int) -> Iterator[Case]:
    """Recordings of the four dialects that were answered well, evenly spread over their files."""
    for path in sorted(folder.glob("*.jsonl.gz")):
        name = path.name.partition(".")[0].replace("_", "-")
        with gzip.open(path, "rb") as lines:
            rows = lines.readlines()
        step = max(1, len(rows) // limit) if limit else 1
        for row in rows[::step]:
            record: dict[str, Any] = decode(row)
            usable = record["status"] < 400 and "code_assist" not in record["tags"]
            counts = any(other in record["endpoint"] for other in ("count_tokens", "compact"))
            if name in MAIN and usable and not counts:
                yield from _case(record, name, kind)


def _case(record: dict[str, Any], name: str, kind: Kind) -> Iterator[Case]:
    request, response = record["request"], record["response"]
    if kind == "requests" and isinstance(request, dict):
        yield Case(record["id"], name, body=request)
    elif kind == "responses" and isinstance(response, dict) and not record["streaming"]:
        yield Case(record["id"], name, body=response, request=request)
    elif kind == "streams" and isinstance(response, str) and record["streaming"]:
        yield Case(record["id"], name, data=response.encode(), request=request)
    elif kind == "streams" and isinstance(response, list) and name == "gemini":
        yield Case(record["id"], name, data=encode(response), request=request)


def measure(folder: Path, limit: int = 0) -> Figures:
    kept = _kept()
    silent: list[Silent] = []
    avoidable: Counter[str] = Counter()
    crossings = imperfect = 0
    for kind in KINDS:
        for case in cases(folder, kind, limit):
            for target in MAIN:
                if target == case.dialect:
                    continue
                crossings += 1
                found = list(silent_fields(case, kind, dialect_name(target)))
                silent += found[:1]
                spared = _avoidable(case, kind, dialect_name(target), kept)
                avoidable.update(f"{title(case.dialect, target)} {name}" for name in spared)
                imperfect += bool(found or spared)
    trips, same, told, unsaid = _round_trips(folder, limit)
    return Figures(crossings, silent, avoidable, imperfect, trips, same, told, unsaid)


def _kept() -> dict[str, set[Feature]]:
    """Direction -> features whose every probe of the fidelity matrix is kept: a loss was not necessary."""
    kept: dict[str, set[Feature]] = {}
    for client, upstream in DIRECTIONS:
        grades: dict[Feature, set[str]] = {}
        for probe in REQUESTS:
            grade = grade_request(probe, dialect_name(client), dialect_name(upstream))
            for feature in probe.features:
                grades.setdefault(feature, set()).add(grade)
        kept[title(client, upstream)] = {name for name, found in grades.items() if found == {"kept"}}
    return kept


def _avoidable(case: Case, kind: Kind, target: DialectName, kept: dict[str, set[Feature]]) -> list[str]:
    """Features that were lost although this direction has a place for them."""
    if kind != "requests":
        return []
    try:
        losses = translate_request(case.body, source=dialect_name(case.dialect), target=target).losses
    except WireglotError:
        return []
    places = kept.get(title(case.dialect, target), set())
    return sorted(
        {loss.feature for loss in losses if loss.action == "dropped" and loss.feature in places} - _NEEDED
    )


def _round_trips(folder: Path, limit: int) -> tuple[int, int, int, list[str]]:
    trips = same = told = 0
    unsaid: list[str] = []
    for case in cases(folder, "responses", limit):
        for client in MAIN:
            if client == case.dialect:
                continue
            outcome = _round_trip(case, dialect_name(client))
            if outcome is None:
                continue
            different, losses = outcome
            trips += 1
            if not different:
                same += 1
            elif losses:
                told += 1
            else:
                unsaid.append(f"{case.id} by {client}: {different[0][:160]}")
    return trips, same, told, unsaid


def _round_trip(case: Case, client: DialectName) -> tuple[list[str], tuple[Loss, ...]] | None:
    """How the turn that comes back to its upstream by a client of another dialect differs from the one a
    client of its own would send, and what was declared on the way. None: there is nothing to send back."""
    upstream = dialect_name(case.dialect)
    codec = dialect(upstream)
    try:
        if codec.parse_error(case.body) is not None:
            return None
        content = codec.parse_response(case.body, _CONTEXT).content
        calls = [part for part in content if isinstance(part, ToolCall)]
        if not content:
            return None
        results = tuple(ToolResult(call.id, (Text("21"),), name=call.name, kind=call.kind) for call in calls)
        turns = (
            Message("user", (Text("?"),)),
            Message("assistant", (Text("-"),)),
            Message("user", results or (Text("!"),)),
        )
        question = Request("model", turns, max_tokens=100)
        if upstream == "gemini":  # some hosts leave the role out, and no client does
            case.body["candidates"][0]["content"].setdefault("role", "model")
        native = said_back(upstream, codec.render_request(question, _CONTEXT).value, case.body)
        there = translate_response(case.body, source=upstream, target=client)
        asked = dialect(client).render_request(question, _CONTEXT).value
        back = translate_request(said_back(client, asked, there.value), source=client, target=upstream)
        before, after = (_turn(codec.parse_request(body, _CONTEXT)) for body in (native, back.value))
    except (WireglotError, KeyError, IndexError):
        return None
    return differences(before, after), (*there.losses, *back.losses)


def _turn(request: Request) -> Any:
    """What the model said, with ids of calls by their order: another dialect may have to rename them."""
    said = [message for message in canonical_request(request).messages if message.role == "assistant"]
    names: dict[str, str] = {}
    out = []
    for message in said:
        parts = []
        for part in message.content:
            if isinstance(part, ToolCall):
                identifier = names.setdefault(part.id, f"call_{len(names)}")
                part = msgspec.structs.replace(part, id=identifier)
            elif isinstance(part, Text):
                part = msgspec.structs.replace(part, logprobs=())  # no history holds them
            parts.append(part)
        out.append(Message(message.role, tuple(parts)))
    return out


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / (whole or 1):.2f} %)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=int, default=0, help="recordings of each file (all)")
    options = parser.parse_args()
    if not any(options.folder.glob("*.jsonl.gz")):
        print(f"No recordings in {options.folder}: nothing was measured.")
        return
    found = measure(options.folder, options.limit)
    quiet, perfect = found.crossings - len(found.silent), found.crossings - found.imperfect
    well = found.same + found.told
    print(f"without silent loss:      {_share(quiet, found.crossings)}")
    print(f"perfect where possible:   {_share(perfect, found.crossings)}")
    print(f"two-turn round trips:     {_share(well, found.trips)}: {found.same} the same, {found.told} told")
    print(f"                          {len(found.unsaid)} silent")
    for path, count in Counter(f"{one.path} > {one.target}" for one in found.silent).most_common(_SHOWN):
        print(f"  silent    {count:5} {path}")
    for name, count in found.avoidable.most_common(_SHOWN):
        print(f"  avoidable {count:5} {name}")
    for line in found.unsaid[:_SHOWN]:
        print(f"  trip      {line}")


if __name__ == "__main__":
    main()
