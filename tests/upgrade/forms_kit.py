"""What lies on disk, opened and without what is made up again: the same for two runs of the same clients."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from proofs.lab.forms import journal_rows, open_envelope, open_sealed, read_database

_PACKED = {"idempotent"}
"""Kinds of documents in MessagePack; all others are JSON, or the bytes of a stream."""
_LATER = {"losses", "running"}
"""Kinds that the oldest versions did not write. They leave them alone, and their sweep ends them in time."""
_SIGNS = {"beat"}
"""Random bytes."""
_LATER_FIELDS = re.compile(
    r'\\*"(frequency_penalty|presence_penalty|prompt_cache_retention|service_tier)\\*":(0\.0|null|\\*"default\\*"),'
    r'|,\\*"description\\*":null,\\*"strict\\*":null|(?<=null),\\*"annotations\\*":\[\]'
    r'|,\\*"(stop_details|container|citations|inference_geo|server_tool_use|service_tier|cache_creation'
    r'|output_tokens_details)\\*":null'
    r'|,\\*"caller\\*":{\\*"type\\*":\\*"direct\\*"}|,\\*"citations\\*":\[\]'
)
"""What Response objects have had since Open Responses asks for it, and Chat's messages since the vendor's schema
does, with its defaults, in JSON or within a text of it. Older versions keep such objects as they come and show
them so."""
_BLANKS = re.compile(
    r',"extra":{"dialect":"anthropic","form":{"blank":{("caller":{"type":"direct"}|"citations":(null|\[\]))}}}'
)
"""That an answer of the demo model has fields that say nothing."""
_ESTIMATE = re.compile(r'(\\*"stop_sequence\\*":null,\\*"usage\\*":{\\*"input_tokens\\*":)\d+')
"""Of the input, where a stream begins: older versions said 0."""
_UNSIGNED_ITEM = re.compile(r",\\*\"encrypted_content\\*\":\\*\"envelope \['unsigned'(, ''){6}\]\\*\"")
"""Who wrote a thought that nobody signed, in Responses: older versions wrote nothing there, and read that nobody
signed it, as where there is nothing."""
_ENVELOPE = re.compile(r"V0cx[A-Za-z0-9+/_-]+=*")
_HEX = re.compile(r"[0-9a-f]{16,}")
_TIMES = re.compile(r"\b[12]\d{9}(\d{3})?\b")
MACHINE = re.compile(r"[\w.-]+-\d+-[0-9a-f]{8}\b")
_MASKED = {
    "digest", "prefix", "created", "revoked", "nonce", "beat",
    "started", "finished", "instance",
}  # fmt: skip
"""Fields whose value is another one each time; that they are there is part of the form."""


def secret_of(folder: Path) -> str:
    found: str = tomllib.loads((folder / "wireglot.toml").read_text(encoding="utf-8"))["server"]["secret"]
    return found


def documents(folder: Path) -> list[str]:
    secret = secret_of(folder)
    found = []
    for row in _table(folder, "documents"):
        if row["kind"] in _LATER:
            continue
        sealed = row.pop("body")
        assert row.pop("size") == len(sealed)
        body = (
            b""
            if row["kind"] in _SIGNS
            else open_sealed(secret, row["tenant"], row["kind"], row["id"], sealed)
        )
        row["expires"] = row["expires"] > 0
        row["body"] = _read(row["kind"], body)
        found.append(row)
    return lines(found)


def vault(folder: Path) -> dict[tuple[str, str], bytes]:
    """Names too: they are made of what was said, and must be found again by others."""
    secret = secret_of(folder)
    return {
        (row["tenant"], row["name"]): _BLANKS.sub(
            "", open_sealed(secret, row["tenant"], "vault", row["name"], row["body"]).decode()
        ).encode()
        for row in _table(folder, "vault")
    }


def usage(folder: Path) -> list[str]:
    """Without `caller_group`, of which the oldest versions know nothing: no key here has a group."""
    rows = [_timeless(row) for row in _table(folder, "usage")]
    assert {row.pop("caller_group", "") for row in rows} == {""}
    return lines(rows)


def keys(folder: Path) -> list[str]:
    """Without `revision`, of which the oldest versions know nothing."""
    return lines(
        {"name": row["name"], "body": msgspec.json.decode(row["body"])} for row in _table(folder, "keys")
    )


def journal(folder: Path) -> list[str]:
    return lines(_timeless(row) for row in journal_rows(folder / "wireglot"))


def lines(rows: Iterable[Any]) -> list[str]:
    """In one order, whatever order they were written in; the order of fields is kept."""
    return sorted(_plain(msgspec.json.encode(_masked(row)).decode()) for row in rows)


def _timeless(row: dict[str, Any]) -> dict[str, Any]:
    """Milliseconds until the first byte may be 0, which a journal does not write down. Fields are read by
    their names, so their order says nothing. Which losses a request had is up to the translation of the day, and
    newer versions give thoughts back to a Gemini that wrote them, to OpenAI's models and to servers that only show
    theirs: without a loss, in a longer prompt."""
    row = {name: row[name] for name in sorted(row) if name != "first_byte"}
    gives_back = row["dialect"] == "openai-chat" and row.get("provider") in ("gpt", "chat")
    if gives_back or row.get("upstream_dialect") == "gemini" != row["dialect"]:
        row.pop("losses", None)
        for count in ("cache_read", "input", "cost"):
            row[count] = f"some {type(row.get(count) or 0).__name__}"
    return {**row, "losses": f"some {type(row['losses']).__name__}"} if row.get("losses") else row


def _table(folder: Path, name: str) -> list[dict[str, Any]]:
    return read_database(folder / "wireglot" / "wireglot.db").tables[name]


def _read(kind: str, body: bytes) -> Any:
    if kind in _PACKED:
        return msgspec.msgpack.decode(body)
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body.decode("utf-8", "backslashreplace")


def _masked(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _masked(each, key) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(each) for each in value]
    if isinstance(value, bytes):
        return "some bytes" if name in _MASKED else value.decode("utf-8", "backslashreplace")
    if name in _MASKED and value:
        return f"some {type(value).__name__}"
    return value


def without_later_fields(text: str) -> str:
    text = _ESTIMATE.sub(r"\g<1>0", _BLANKS.sub("", _LATER_FIELDS.sub("", text)))
    return as_older_ones_read(text)


_LATER_PAGE_FIELDS = re.compile(
    r'"(?:group|owner|sign_in_of)":null,|,"searches_per_day":null|"(?:route|last_request|currency)":"[^"]*",(?=.{0,120}"items":)'
)
"""Of pages about keys, which have none of them, and about one session."""


def as_older_ones_read(text: str) -> str:
    """A text with its envelopes opened, without what newer versions seal behind all else."""
    text = _LATER_PAGE_FIELDS.sub("", text)
    return _UNSIGNED_ITEM.sub("", _ENVELOPE.sub(lambda found: _without_owner(found[0]), text))


def _without_owner(text: str) -> str:
    try:
        reported = open_envelope(text)
    except msgspec.DecodeError:  # a summary: sealed otherwise
        return text
    if reported is None:
        return text
    fields, letters = reported[:7], reported[7:8]
    return f"envelope {[*fields, *(each for each in letters if each >= 0)]}"


def _plain(text: str) -> str:
    return MACHINE.sub("a-machine", _TIMES.sub("0", _HEX.sub("hex", without_later_fields(text))))
