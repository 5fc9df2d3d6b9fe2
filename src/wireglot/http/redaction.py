"""Secrets are scrubbed by their value at every sink: log lines, errors for clients, telemetry.

What is replaced: each loaded secret, its base64 (alone or inside a longer text, as in `Basic`), URL-quoted,
hex and JSON spellings, and every piece of those with at least PIECE_BYTES; then everything that looks like a
well-known kind of key, even if it was never loaded.

Short secrets. A piece below PIECE_BYTES is not searched. A whole secret shorter than that is replaced
wherever it occurs, down to SHORTEST_BYTES. One below SHORTEST_BYTES is not replaced: "x" is in half of all
words, and a scrubbed "e[redacted]ample" would reveal it. It is replaced only after the name of a credential
(`Bearer x`, `key=x`). Placeholder keys of local servers ("ollama", "EMPTY") are not secrets.
"""

from __future__ import annotations

import base64
import html
import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from struct import Struct
from typing import Final
from urllib.parse import quote, quote_plus

MASK: Final = b"[redacted]"
PIECE_BYTES: Final = 12
SHORTEST_BYTES: Final = 6

_PLACEHOLDERS: Final = frozenset({
    "dummy", "empty", "lm-studio", "lmstudio", "local", "localhost", "no-key", "no-key-required", "none",
    "not-needed", "not-required", "null", "ollama", "placeholder", "sk-no-key-required", "unused",
    "your-api-key",
})  # fmt: skip

# A gram of _GRAM_BYTES after every _STRIDE_BYTES: any PIECE_BYTES of a text contain a whole one, so that
# checking a text takes a seventh of its length in set look-ups, however many secrets there are.
_GRAM_BYTES: Final = 6
_STRIDE_BYTES: Final = PIECE_BYTES - _GRAM_BYTES + 1
_PROBES: Final = 64
# _BLOCKS[n] extracts n grams from a text in one call.
_BLOCKS: Final = tuple(
    Struct(f"{_STRIDE_BYTES - _GRAM_BYTES}x".join([f"{_GRAM_BYTES}s"] * count))
    for count in range(_PROBES + 1)
)

_KEY: Final = rb"[A-Za-z0-9_\-]"
_PATTERNS: Final = tuple(
    (dict.fromkeys(triggers, 0), re.compile(pattern))
    for triggers, pattern in (
        ((b"sk-",), rb"(?<![A-Za-z0-9])sk-" + _KEY + rb"{16,}"),
        ((b"AIza",), rb"AIza" + _KEY + rb"{20,}"),
        ((b"gsk_",), rb"gsk_" + _KEY + rb"{16,}"),
        ((b"xai-",), rb"(?<![A-Za-z0-9])xai-" + _KEY + rb"{20,}"),
        ((b"xox",), rb"xox[a-z]-[A-Za-z0-9\-]{10,}"),
        (
            (b"ghp_", b"gho_", b"ghs_", b"ghu_", b"ghr_", b"github_pat_"),
            rb"(?:gh[opsur]_|github_pat_)[A-Za-z0-9_]{16,}",
        ),
        ((b"hf_",), rb"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{20,}"),
        ((b"ya29.",), rb"ya29\.[A-Za-z0-9_\-.]{16,}"),
        ((b"AKIA",), rb"(?<![A-Z0-9])AKIA[A-Z0-9]{16}"),
        # Only at the start of a run: otherwise each "eyJ" of a long one would scan it to its end.
        ((b"eyJ",), rb"(?<![A-Za-z0-9_\-])eyJ" + _KEY + rb"{8,}\." + _KEY + rb"{8,}(?:\." + _KEY + rb"*)?"),
    )
)
# The value of a named credential: only the value is replaced. `=` and the quotes of JSON may come between; a
# word that a person would write after "bearer" ("bearer token") is no value.
_NAME: Final = (
    rb"(?i)(?P<name>\b(?:bearer|basic)(?:\s+|%20)|[?&;](?:key|api_key|apikey|access_token|token|auth)="
    rb"|\b(?:x-api-key|x-goog-api-key|authorization|api[_-]?key)(?:\\?[\"'])?\s*[:=]\s*(?:\\?[\"'])?"
    rb"(?:(?:bearer|basic)\s+)?)"
)
_VALUE: Final = rb"[^\s\"'&<>,;\\{}()]"
_NAMED: Final = re.compile(
    _NAME
    + rb"(?!(?:token|tokens|auth|authentication|authorization|expected|is|was|or|and|key|keys|scheme|header)"
    rb"(?![\w-]))"
    rb"(?P<value>" + _VALUE + rb"+)"
)
_NAMES: Final = {
    b"bearer": 0, b"basic": 0, b"authorization": 0, b"api_key": len(b"?"), b"apikey": len(b"?"),
    b"api-key": len(b"x-goog-"), b"key=": len(b"?"), b"token=": len(b"?access_"), b"auth=": len(b"?"),
}  # fmt: skip
"""How far before each of them a name may begin."""
_STRETCH_END: Final = re.compile(rb"[,{}()<>]")
_LONG_BYTES: Final = 32 * 1024
_BYTES_OF_A_PLACE: Final = 200
_NAMED_FIELD: Final = re.compile(r"(?i)(?:private_key|private_key_id|secret|token|password|api_key)$")


_OPEN: Final = re.compile(
    rb"(?<![A-Za-z0-9])(?:sk-|xai-|hf_|eyJ)|(?<![A-Z0-9])AKIA|AIza|gsk_|xox[a-z]-|gh[opsur]_|github_pat_|ya29\."
)
"""The beginning of a key of a well-known kind, which may continue."""
_KEY_BYTES: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
_OPEN_BYTES: Final = 4096 + 16
_OPEN_NAMED: Final = re.compile(_NAME + _VALUE + rb"*\Z")
"""A named credential that may continue: "Basic" may be all that has come of it."""
_OPEN_NAMED_BYTES: Final = 1024
_FEW_BYTES: Final = 4
"""Shorter parts of a secret occur in any text."""


class Redactor:
    """Hides the secrets of one configuration; `public` are words (provider names) that are not secret."""

    def __init__(self, secrets: Iterable[str] = (), public: Iterable[str] = ()) -> None:
        known = _PLACEHOLDERS | {word.lower() for word in public}
        forms = {form for secret in secrets if secret.lower() not in known for form in _forms(secret)}
        self._pieces = {
            form[at : at + PIECE_BYTES] for form in forms for at in range(len(form) - PIECE_BYTES + 1)
        }
        self._grams = {piece[at : at + _GRAM_BYTES] for piece in self._pieces for at in range(_STRIDE_BYTES)}
        # The longest first: one may be part of another.
        self._short = sorted((form for form in forms if len(form) < PIECE_BYTES), key=len, reverse=True)
        self._beginnings: list[bytes] | None = None

    def knowing(self, secrets: Iterable[str]) -> Redactor:
        """A redactor that knows these secrets as well."""
        more = Redactor(secrets)
        more._pieces |= self._pieces
        more._grams |= self._grams
        more._short = sorted({*more._short, *self._short}, key=len, reverse=True)
        return more

    def text(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        clean = self.data(data)
        # A piece that ends inside a character leaves the rest of it behind.
        return text if clean is data else clean.decode("utf-8", "replace")

    def data(self, data: bytes) -> bytes:
        """Returns the same object if there is nothing to hide."""
        return _without_patterns(self.values(data))

    def values(self, data: bytes) -> bytes:
        """Only the loaded secrets, for a text whose foreign parts have been through `text` already."""
        if self._grams and (suspects := self._suspects(data)):
            data = self._without_pieces(data, suspects)
        for form in self._short:
            if form in data:
                data = data.replace(form, MASK)
        return data

    def open_end(self, data: bytes) -> int:
        """How many bytes at the end of an unfinished text may be the beginning or the middle of a secret.
        None of them may be shown before more has come."""
        if self._beginnings is None:
            self._beginnings = sorted({*self._pieces, *self._short})
        known, open_bytes = self._beginnings, 0
        for length in range(min(len(data), PIECE_BYTES - 1), _FEW_BYTES - 1, -1):
            end = data[-length:]
            place = bisect_left(known, end)
            if place < len(known) and known[place].startswith(end):
                open_bytes = length
                break
        while open_bytes and data[-open_bytes - 1 : PIECE_BYTES - open_bytes - 1 or None] in self._pieces:
            open_bytes += 1
        end = data[-_OPEN_BYTES:]
        if (found := _OPEN.search(end, len(end.rstrip(_KEY_BYTES)))) is not None:
            open_bytes = max(open_bytes, len(end) - found.start())
        if (found := _OPEN_NAMED.search(data[-_OPEN_NAMED_BYTES:])) is not None:
            open_bytes = max(open_bytes, len(found[0]))
        return open_bytes

    def _suspects(self, data: bytes) -> list[int]:
        """Where grams of a secret are, among those that are sampled: each piece contains one of these."""
        grams, found = self._grams, list[int]()
        for at in range(0, len(data) - _GRAM_BYTES + 1, _PROBES * _STRIDE_BYTES):
            count = min(_PROBES, (len(data) - at + _STRIDE_BYTES - _GRAM_BYTES) // _STRIDE_BYTES)
            probes = _BLOCKS[count].unpack_from(data, at)
            if not grams.isdisjoint(probes):
                found += [at + n * _STRIDE_BYTES for n, gram in enumerate(probes) if gram in grams]
        return found

    def _without_pieces(self, data: bytes, suspects: list[int]) -> bytes:
        pieces, end = self._pieces, 0
        out: list[bytes] = []
        for suspect in suspects:
            for at in range(max(0, suspect - _STRIDE_BYTES + 1), suspect + 1):
                if data[at : at + PIECE_BYTES] in pieces:
                    if at > end or not out:  # otherwise it continues the last one
                        out += (data[end:at], MASK)
                    end = at + PIECE_BYTES
        return b"".join((*out, data[end:])) if out else data


def _without_patterns(data: bytes) -> bytes:
    return _long_without_patterns(data) if len(data) > _LONG_BYTES else _stretch_without_patterns(data)


def _stretch_without_patterns(data: bytes) -> bytes:
    for triggers, pattern in _PATTERNS:
        for trigger in triggers:
            if trigger in data:
                data = _replaced(data, pattern, data, triggers, lambda found: MASK)
                break
    lower = data.lower()
    for name in _NAMES:
        if name in lower:
            return _replaced(data, _NAMED, lower, _NAMES, _mask_value)
    return data


def _long_without_patterns(data: bytes) -> bytes:
    """The same in sections: a search through megabytes is one call, for which all other threads wait. No
    match contains one of the characters that end a section."""
    out: list[bytes] = []
    at = 0
    while at < len(data):
        cut = _STRETCH_END.search(data, at + _LONG_BYTES // 2)
        end = cut.end() if cut is not None else len(data)
        stretch = data[at:end]
        out.append(_stretch_without_patterns(stretch))
        at = end
    clean = b"".join(out)
    return data if clean == data else clean


def _replaced(
    data: bytes,
    pattern: re.Pattern[bytes],
    looked_in: bytes,
    triggers: Mapping[bytes, int],
    instead: Callable[[re.Match[bytes]], bytes],
) -> bytes:
    """The result of `pattern.sub`, searched only where a match may begin: at most this many bytes before a
    trigger. An unrestricted search would try every character."""
    if sum(map(looked_in.count, triggers)) * _BYTES_OF_A_PLACE > len(data):
        return pattern.sub(instead, data)
    starts: set[int] = set()
    for trigger, before in triggers.items():
        at = looked_in.find(trigger)
        while at >= 0:
            starts.update(range(max(0, at - before), at + 1))
            at = looked_in.find(trigger, at + 1)
    out: list[bytes] = []
    end = 0
    for start in sorted(starts):
        if start >= end and (found := pattern.match(data, start)) is not None:
            out += (data[end:start], instead(found))
            end = found.end()
    return b"".join((*out, data[end:])) if out else data


def _mask_value(found: re.Match[bytes]) -> bytes:
    name, value = found.group("name", "value")
    return found[0] if value.startswith(MASK) else name + MASK


def _forms(secret: str) -> Iterator[bytes]:
    """The spellings in which a secret may occur."""
    for value in _values(secret):
        raw = value.encode("utf-8", "surrogatepass")
        if len(raw) < SHORTEST_BYTES:
            continue
        yield raw
        yield from _base64(raw)
        yield raw.hex().encode()
        yield raw.hex().upper().encode()
        if not value.isalnum():
            yield from _escaped(value, raw)


def _base64(raw: bytes) -> Iterator[bytes]:
    """The base64 of the value alone and inside a longer text: the characters that depend only on the value,
    at each of the three offsets where it may begin in a group."""
    whole = base64.b64encode(raw).rstrip(b"=")
    forms = [whole]
    for lead, own in ((0, 0), (1, 2), (2, 3)):
        full = (lead + len(raw)) * 8 // 6
        forms.append(base64.b64encode(bytes(lead) + raw)[own:full])
    for form in forms:
        if len(form) >= SHORTEST_BYTES:
            yield form
            yield form.translate(bytes.maketrans(b"+/", b"-_"))


def _escaped(value: str, raw: bytes) -> Iterator[bytes]:
    """URL-quoted, JSON, HTML: if they differ from the value."""
    quoted = quote(raw, safe="")
    spellings = {
        quoted,
        quote(raw),
        quote_plus(raw),
        quote(quoted, safe=""),
        re.sub("%..", lambda code: code[0].lower(), quoted),
        json.dumps(value)[1:-1],
        html.escape(value),
    }
    for spelling in spellings:
        yield spelling.encode()
    yield json.dumps(value, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")


def _values(secret: str) -> Iterator[str]:
    """Of a JSON object (a service account) only the secret fields count. A PEM block counts line by line."""
    secret = secret.strip()
    if secret.startswith("{"):
        try:
            fields = json.loads(secret)
        except ValueError:
            fields = {}
        named = [value for name, value in fields.items() if _NAMED_FIELD.search(name)]
        parts = [value for value in named if isinstance(value, str) and value]
        for part in parts:
            yield from _values(part)
        if parts:
            return
    if "-----BEGIN" in secret:
        yield from (line for line in secret.splitlines() if line and not line.startswith("-----"))
        return
    if secret:
        yield secret
