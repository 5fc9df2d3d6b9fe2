"""A reader of what a gateway writes to disk, apart from the gateway's own.

It knows the forms as they were first released, and takes nothing from the package. A version that writes
something else shows here, before its neighbours in a rolling upgrade find out, or anyone who goes back to the
version before it.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw
import msgspec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_SEGMENT: Final = struct.Struct(">4sIQ")
_FRAME: Final = struct.Struct(">II")
_SEALED: Final = 1
_COMPRESSED: Final = 0x80
_NONCE_BYTES: Final = 12
_ENVELOPE: Final = b"WG1"
_TAG_BYTES: Final = 16


def journal_rows(folder: Path) -> list[dict[str, Any]]:
    """Every row in the journals under a data folder, the oldest first, whether or not the store has it."""
    rows: list[dict[str, Any]] = []
    for home in sorted(path for path in (folder / "journal").glob("*") if path.is_dir()):
        files = [(path.read_bytes(), path.name) for path in home.glob("*.usage")]
        headed = [(_SEGMENT.unpack_from(data), data) for data, _ in files]
        for (magic, salt, _), data in sorted(headed, key=lambda each: each[0][2]):
            if magic == b"WGJ1":
                rows += _frames(data[_SEGMENT.size :], salt)
    return rows


def _frames(data: bytes, salt: int) -> Iterator[dict[str, Any]]:
    at = 0
    while at + _FRAME.size <= len(data):
        length, checksum = _FRAME.unpack_from(data, at)
        body = data[at + _FRAME.size : at + _FRAME.size + length]
        if not length or zlib.crc32(body, salt) != checksum:
            return
        yield msgspec.msgpack.decode(body)
        at += _FRAME.size + length


def open_sealed(secret: str, caller: str, kind: str, id: str, sealed: bytes) -> bytes:
    """Raises where another version, secret or place has sealed it."""
    version, nonce, body = sealed[0], sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
    if version & ~_COMPRESSED != _SEALED:
        raise ValueError(f"sealed in version {version}")
    key = HKDF(SHA256(), length=32, salt=None, info=b"wireglot store v1" + caller.encode())
    bound = bytes((version,))
    for part in (caller, kind, id):
        bound += struct.pack(">I", len(part.encode())) + part.encode()
    value = AESGCM(key.derive(secret.encode())).decrypt(nonce, body, bound)
    return zlib.decompress(value) if version & _COMPRESSED else value


def open_envelope(text: str) -> list[Any] | None:
    """What a client carries for another provider; None: it is no envelope."""
    try:
        raw = base64.b64decode(text, altchars=b"-_" if set(text) & set("-_") else None)
    except ValueError:
        return None
    if not raw.startswith(_ENVELOPE):
        return None
    found: list[Any] = msgspec.msgpack.decode(raw[len(_ENVELOPE) + _TAG_BYTES :])
    return found


class Stored(NamedTuple):
    """A SQLite store: its tables as they are declared, and their rows by name of the column."""

    pragmas: dict[str, int]
    schema: list[str]
    tables: dict[str, list[dict[str, Any]]]


def read_database(path: Path) -> Stored:
    connection = apsw.Connection(str(path))
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    try:
        pragmas = {name: connection.pragma(name) for name in ("application_id", "user_version")}
        declared = _rows(connection, "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name")
        tables = {
            each["name"]: _rows(connection, f'SELECT * FROM "{each["name"]}"')
            for each in declared
            if each["type"] == "table"
        }
        return Stored(pragmas, [each["sql"] for each in declared if each["sql"]], tables)
    finally:
        connection.close(True)


def _rows(connection: apsw.Connection, query: str) -> list[dict[str, Any]]:
    cursor = connection.execute(query)
    names: list[str] = []
    rows = []
    for row in cursor:
        names = names or [name for name, *_ in cursor.get_description()]
        rows.append(dict(zip(names, row, strict=True)))
    return rows
