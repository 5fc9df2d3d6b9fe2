"""Finds matching tools: by the words of a query (BM25), or by a regular expression."""

from __future__ import annotations

import asyncio
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final

from wireglot_core.ir.request import Tool
from wireglot_core.wire.json import BadJson, decode, encode

# Tools that one search for tools finds.
MAX_HITS: Final = 5
_MAX_TEXT_CHARACTERS: Final = 4_000
"""Characters of each field of a tool (name, description, parameters) that a search for tools looks at."""
_PATTERN_SECONDS: Final = 2.0
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
"""Parts of `snake_case` and `camelCase` are words too."""
_COMMON: Final = frozenset(
    {
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "by",
        "for",
        "from",
        "in",
        "is",
        "it",
        "of",
        "on",
        "or",
        "the",
        "to",
    }
)
"""Words of a query that do not describe a tool."""
_SATURATION: Final = 1.2
_LENGTH_WEIGHT: Final = 0.75


class BadPattern(Exception):
    """Not a valid Python regular expression; with the reason."""


class PatternTimeout(Exception):
    """The pattern takes too long."""


def fields_of(tool: Tool) -> list[str]:
    """The searched fields of a tool: its name first."""
    fields = [tool.name, tool.namespace, tool.description or ""]
    properties = (tool.schema or {}).get("properties")
    for name, schema in properties.items() if type(properties) is dict else ():
        described = schema.get("description") if type(schema) is dict else None
        fields += (name, described if type(described) is str else "")
    return [field[:_MAX_TEXT_CHARACTERS] for field in fields if field]


def words_of(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def rank_by_words(query: str, tools: Sequence[Tool]) -> list[int]:
    """Indexes of the tools that score highest in Okapi BM25, without its constant factor; none without a
    common word."""
    counts = [Counter(words_of("\n".join(fields_of(tool)))) for tool in tools]
    lengths = [count.total() for count in counts]
    average = sum(lengths) / max(len(lengths), 1)
    scores = [0.0] * len(tools)
    for word in set(words_of(query)) - _COMMON:
        holding = [place for place, count in enumerate(counts) if word in count]
        rarity = math.log(1 + (len(tools) - len(holding) + 0.5) / (len(holding) + 0.5))
        for place in holding:
            times = counts[place][word]
            length = 1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * lengths[place] / average
            scores[place] += rarity * times / (times + _SATURATION * length)
    best = sorted((place for place, score in enumerate(scores) if score), key=lambda place: -scores[place])
    return best[:MAX_HITS]


_SEARCH: Final = """
import json, re, sys
asked = json.load(sys.stdin.buffer)
try:
    search = re.compile(asked["pattern"]).search
except (re.error, OverflowError, RecursionError) as problem:
    print(json.dumps({"error": str(problem)}))
else:
    ranks = [next((at for at, text in enumerate(texts) if search(text)), None) for texts in asked["tools"]]
    hits = [place for place, rank in enumerate(ranks) if rank is not None]
    print(json.dumps({"hits": sorted(hits, key=lambda place: ranks[place] > 0)}))
"""
_KEPT: Final = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Variables without which some builds of Python do not start."""


async def search_pattern(pattern: str, tools: Sequence[Tool]) -> list[int]:
    """Indexes of the tools that a pattern matches, those with a match in their name first.

    It runs in a separate process: Python's `re` can need exponential time, and only the end of its process
    stops it. Raises BadPattern, PatternTimeout, and OSError if no process can be started.
    """
    asked = encode({"pattern": pattern, "tools": [fields_of(tool) for tool in tools]})
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", _SEARCH),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
    )
    try:
        async with asyncio.timeout(_PATTERN_SECONDS):
            said, _ = await process.communicate(asked)
    except TimeoutError:
        raise PatternTimeout from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        answer = decode(said)
    except BadJson:
        raise PatternTimeout from None  # the system ended it
    if "error" in answer:
        raise BadPattern(answer["error"])
    hits: list[int] = answer["hits"]
    return hits[:MAX_HITS]
