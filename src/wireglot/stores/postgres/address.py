"""What a `postgresql://` URL tells us beyond what the driver reads."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, urlencode

import msgspec

from wireglot.stores.base import StoreUnusable

DEFAULT_SCHEMA: Final = "wireglot"
_NAME_MAX_BYTES: Final = 63
"""PostgreSQL would cut a longer one silently, and two schemas could become one."""


class Address(msgspec.Struct, frozen=True):
    dsn: str
    schema: str

    @property
    def quoted_schema(self) -> str:
        return '"' + self.schema.replace('"', '""') + '"'


def read_address(url: str) -> Address:
    """`?schema=` is ours; the rest (`sslmode`, `target_session_attrs`, several hosts) is the driver's."""
    base, _, query = url.partition("?")
    options = parse_qsl(query, keep_blank_values=True)
    schema = dict(options).get("schema", DEFAULT_SCHEMA)
    if not schema or "\0" in schema or len(schema.encode("utf-8", "replace")) > _NAME_MAX_BYTES:
        raise StoreUnusable(f"store.url: schema must be a name of 1 to {_NAME_MAX_BYTES} bytes")
    others = urlencode([(name, value) for name, value in options if name != "schema"])
    return Address(dsn=f"{base}?{others}" if others else base, schema=schema)
