"""Attack every endpoint of a gateway that runs as a process, and count the requests that are admitted.

    python -m proofs.lab.doors [--only smuggling,keys] [--every 1] [--seed 1]

Smuggled requests and answers; foreign hosts, origins and pages of browsers; every route without its key;
URLs, names, headers and redirects that would move a request elsewhere; providers with invalid TLS;
another caller's data; reasoning state that was forged, damaged or taken from another. Each class also
makes valid requests, which must be admitted: a gateway that refuses everything would pass the rest. The
provider behind the gateway keeps every byte that it was sent, and decides.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from proofs.lab.doors import callers, envelopes, keys, origins, providers, smuggling, ssrf, tls
from proofs.lab.doors.knocking import Book
from proofs.lab.result import Run, add_options

CLASSES: Final[dict[str, tuple[str, Callable[[Book, Path], Awaitable[None]]]]] = {
    "smuggling": ("smuggled requests", smuggling.trial),
    "answers": ("smuggled answers of a provider", providers.trial),
    "origins": ("Host, Origin, CORS, pages of a browser", origins.trial),
    "keys": ("routes without their key", keys.trial),
    "ssrf": ("requests moved elsewhere (SSRF)", ssrf.trial),
    "tls": ("providers with invalid TLS", tls.trial),
    "callers": ("another caller's data", callers.trial),
    "envelopes": ("forged and transplanted envelopes", envelopes.trial),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.lab.doors", description=__doc__)
    parser.add_argument("--only", default=",".join(CLASSES), help="classes, by commas")
    parser.add_argument("--every", type=int, default=1, help="make each n-th knock only")
    parser.add_argument("--seed", type=int, default=1)
    add_options(parser)
    arguments = parser.parse_args()
    wanted = arguments.only.split(",")
    if unknown := set(wanted) - set(CLASSES):
        parser.error(f"no such class: {', '.join(sorted(unknown))}")
    run = Run("doors", "smuggling, origins, keys, SSRF, TLS, isolation, envelopes", seed=arguments.seed)
    problems: list[str] = []
    for name in wanted:
        title, trial = CLASSES[name]
        book = Book(name, every=arguments.every, seed=arguments.seed)
        with tempfile.TemporaryDirectory(prefix="doors-") as work:
            asyncio.run(_tried(trial, book, Path(work)))
        problems += book.admitted + book.shut
        run.counts[f"{name}: attempts"] = book.attempts
        run.counts[f"{name}: valid requests"] = book.opened
        run.counts.update({f"{name}: {what}": count for what, count in sorted(book.counts.items())})
        run.figure(
            f"{title}: admitted of {book.attempts:,}",
            demanded="0",
            measured=len(book.admitted),
            holds=not book.admitted and book.attempts > 0,
        )
        run.figure(
            f"{title}: valid requests that were refused, of {book.opened + len(book.shut)}",
            demanded="0",
            measured=len(book.shut),
            holds=not book.shut and book.opened > 0,
        )
        print(f"{name}: {book.attempts} attempts, {len(book.admitted)} admitted", flush=True)
    run.tell(problems)
    return run.write(arguments.out)


async def _tried(trial: Callable[[Book, Path], Awaitable[None]], book: Book, folder: Path) -> None:
    await trial(book, folder)


if __name__ == "__main__":
    sys.exit(main())
