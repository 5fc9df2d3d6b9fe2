"""Send legal monsters through a gateway, from and to every dialect, and see how long others wait meanwhile.

    python -m proofs.lab.big_bodies [--only "20,000 tool turns"] [--out PATH]

How long others wait while nothing else happens is reported beside it: that is the machine. A wait over the
limit is tried twice more: one that does not come again was the machine's too.
"""

from __future__ import annotations

import argparse
import http.client
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from proofs.lab.monsters import DIALECTS, MODEL, MONSTERS, answer, path, request, said, text
from proofs.lab.others import Others
from proofs.lab.result import Run, add_options
from proofs.served import Served
from wireglot.testing.live_gateway import BASES
from wireglot.testing.scripted_upstream import Behaviour, Recorded, ScriptedUpstream
from wireglot_core.wire.json import encode

_MAX_SECONDS: Final = 0.25
_QUIET_SECONDS: Final = 3.0
_ANSWER_BYTES: Final = 10_000_000
_OK: Final = 200
_TRIES: Final = 3
LARGE_ANSWER: Final = "an answer of 10 MB"


def _configured(upstream: ScriptedUpstream) -> str:
    lines = '[server]\nlog = "json"\n'
    for dialect in DIALECTS:
        url = f"{upstream.url}{BASES[dialect]}"
        lines += f'[providers.{dialect}-up]\ndialect = "{dialect}"\nbase_url = "{url}"\napi_key = "k"\n'
    return lines


class Upstream:
    """Answers in the dialect that it is asked in: a word, or very many."""

    def __init__(self) -> None:
        self.words = "ok"

    def decide(self, asked: Recorded) -> Behaviour:
        endings = {path(dialect, MODEL).rpartition("/")[2]: dialect for dialect in DIALECTS}
        dialect = endings[asked.path.rpartition("/")[2].partition("?")[0]]
        return Behaviour(body=encode(answer(dialect, self.words)))


def _post(port: int, dialect: str, target: str, body: dict[str, Any]) -> int:
    model = f"{target}-up/{MODEL}"
    if dialect != "gemini":
        body = {**body, "model": model}
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    link.request("POST", path(dialect, model), encode(body), {"content-type": "application/json"})
    reply = link.getresponse()
    reply.read()
    link.close()
    return reply.status


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.lab.big_bodies")
    parser.add_argument("--only", default="", help="one of the monsters")
    add_options(parser)
    given = parser.parse_args(arguments)
    run = Run("big_bodies", "nobody waits over 0.25 s for another's body")
    behind = Upstream()
    with tempfile.TemporaryDirectory() as folder, ScriptedUpstream(decide=behind.decide) as upstream:
        served = Served(Path(folder), _configured(upstream))
        served.start()
        others = Others(served.port, served.pid)
        try:
            time.sleep(_QUIET_SECONDS)
            quiet = others.waited()
            run.counts["requests while nothing happens"] = quiet.count
            for name in (*MONSTERS, LARGE_ANSWER):
                if given.only in ("", name):
                    _measure(run, name, served.port, behind, others, quiet.longest)
        finally:
            others.close()
            served.stop()
    return run.write(given.out)


def _measure(run: Run, name: str, port: int, behind: Upstream, others: Others, quiet: float) -> None:
    behind.words = text(_ANSWER_BYTES) if name == LARGE_ANSWER else "ok"
    longest, worst, asked, bad, tries, where = 0.0, 0.0, 0, 0, 0, ""
    for source in DIALECTS:
        body = MONSTERS[name](source) if name in MONSTERS else request(source, said("hi"))
        for target in DIALECTS:
            waited = float("inf")
            for _ in range(_TRIES):
                others.waited()
                bad += _post(port, source, target, body) != _OK
                this_time = others.waited()
                asked += this_time.count
                tries += 1
                waited = min(waited, this_time.longest)
                worst = max(worst, this_time.longest)
                if waited <= _MAX_SECONDS:
                    break
            if waited > longest:
                longest, where = waited, f"{source} to {target}"
    run.counts[f"other requests during {name}"] = asked
    run.counts[f"sent: {name}"] = tries
    run.figure(
        f"longest wait during {name}",
        demanded=f"at most {_MAX_SECONDS} s, and all answered",
        measured=f"{longest:.3f} s ({where}); {bad} not answered; {worst:.3f} s with waits that did not come "
        f"again; {quiet:.3f} s while nothing happens",
        holds=longest <= _MAX_SECONDS and not bad,
    )


if __name__ == "__main__":
    sys.exit(main())
