"""Recorded traffic in all directions: what is lost in silence, what could have been kept, what comes back.

`python -m proofs.fidelity.corpus FOLDER [--limit N]` prints three figures and what is behind them.
"""

from __future__ import annotations

import argparse
import gzip
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from proofs.fidelity.ablation import Kind, Silent, silent_fields
from proofs.fidelity.matrix import DIRECTIONS, grade_request, title
from proofs.fidelity.necessary import NOTHING, Document, why_needed
from proofs.fidelity.request_probes import REQUESTS
from proofs.fidelity.round_trips import Kept, RoundTrips, kept_answers, round_trips
from wireglot_core.dialects.registry import DialectName, dialect_name
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.loss import Feature, Loss
from wireglot_core.testing.check_dialect import Case
from wireglot_core.testing.strategies.samples import MAIN
from wireglot_core.translate import StreamTranslator, translate_request, translate_response
from wireglot_core.wire.json import decode, encode

KINDS: tuple[Kind, ...] = ("requests", "responses", "streams")
_SHOWN = 12


class Figures(NamedTuple):
    crossings: int
    silent: list[list[Silent]]
    """Of each crossing that has any."""
    avoidable: Counter[str]
    imperfect: int
    alone: RoundTrips
    remembered: RoundTrips


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
    kept_in_requests, kept_in_answers = kept_requests(), kept_answers()
    silent: list[list[Silent]] = []
    avoidable: Counter[str] = Counter()
    crossings = imperfect = 0
    for kind in KINDS:
        for case in cases(folder, kind, limit):
            for target in MAIN:
                if target == case.dialect:
                    continue
                crossings += 1
                found = list(silent_fields(case, kind, dialect_name(target)))
                if found:
                    silent.append(found)
                if kind == "requests":
                    direction, kept = title(case.dialect, target), kept_in_requests
                else:  # reported by the client, as in the matrix
                    direction, kept = title(target, case.dialect), kept_in_answers
                losses = _losses(case, kind, dialect_name(target))
                spared = avoidable_losses(losses, kept[direction], case.body or NOTHING)
                avoidable.update(f"{direction} {kind} {name}" for name in spared)
                imperfect += bool(found or spared)
    answers = list(cases(folder, "responses", limit))
    alone, remembered = (round_trips(answers, kept_in_answers, keeps) for keeps in (False, True))
    return Figures(crossings, silent, avoidable, imperfect, alone, remembered)


def kept_requests() -> Kept:
    """Direction -> features whose every probe of the fidelity matrix is kept: a loss was not necessary."""
    kept: Kept = {}
    for client, upstream in DIRECTIONS:
        grades: dict[Feature, set[str]] = {}
        for probe in REQUESTS:
            grade = grade_request(probe, dialect_name(client), dialect_name(upstream))
            for feature in probe.features:
                grades.setdefault(feature, set()).add(grade)
        kept[title(client, upstream)] = {name for name, found in grades.items() if found == {"kept"}}
    return kept


def avoidable_losses(losses: Iterable[Loss], places: set[Feature], document: Document = NOTHING) -> list[str]:
    """Features that were lost although this direction has a place for them."""
    return sorted(
        {
            loss.feature
            for loss in losses
            if loss.action == "dropped" and loss.feature in places and not why_needed(loss, document)
        }
    )


def _losses(case: Case, kind: Kind, target: DialectName) -> tuple[Loss, ...]:
    source = dialect_name(case.dialect)
    try:
        if kind == "requests":
            return translate_request(case.body, source=source, target=target).losses
        if kind == "responses":
            return translate_response(case.body, source=source, target=target).losses
        array = case.data.lstrip()[:1] == b"["
        translator = StreamTranslator(source=source, target=target, framing="json-array" if array else "sse")
        translator.feed(case.data)
        translator.close()
    except WireglotError:
        return ()
    return tuple(translator.losses)


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
    print(f"without silent loss:      {_share(quiet, found.crossings)}")
    print(f"perfect where possible:   {_share(perfect, found.crossings)}")
    _print_trips("two-turn round trips:", found.remembered)
    _print_trips("... by the client alone:", found.alone)
    fields = {(one.case, one.path, one.target) for one in chain.from_iterable(found.silent)}
    for (path, target), count in Counter((path, target) for _, path, target in fields).most_common(_SHOWN):
        print(f"  silent    {count:5} {path} > {target}")
    for name, count in found.avoidable.most_common(_SHOWN):
        print(f"  avoidable {count:5} {name}")
    for name, count in found.remembered.avoidable.most_common(_SHOWN):
        print(f"  trip      {count:5} {name}")
    for line in found.remembered.unsaid[:_SHOWN]:
        print(f"  trip      {line}")


def _print_trips(name: str, found: RoundTrips) -> None:
    print(
        f"{name:25} {_share(found.same + found.needed, found.trips)}: {found.same} the same, "
        f"{found.needed} reported and necessary, {sum(found.avoidable.values())} reported and not, "
        f"{len(found.unsaid)} silent"
    )


if __name__ == "__main__":
    main()
