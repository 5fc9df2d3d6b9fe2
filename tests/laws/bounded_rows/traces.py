"""Bodies that are shortened before they are recorded."""

from tests.laws.bounded import Row
from wireglot_core.traces.shorten import KEPT_BYTES, shortened

ROWS = [
    Row("escapes before a quote", lambda n: b'["' + b"\\" * 20 * n + b'"]', lambda data: shortened(data, 10)),
    Row("escaped quotes", lambda n: b'["' + b'\\"' * 2 * n + b'"]', lambda data: shortened(data, 10)),
    Row("short strings", lambda n: b"[" + b'"a",' * n + b'""]', lambda data: shortened(data, 10)),
    Row(
        "long strings",
        lambda n: b"[" + (b'"' + b"a b" * KEPT_BYTES[0] + b'",') * (n // 100) + b'""]',
        lambda data: shortened(data, len(data) // 2),
        n=2_000,
    ),
    Row(
        "many texts of a few thousand characters",
        lambda n: b"[" + (b'"' + b"a b" * KEPT_BYTES[2] + b'",') * (n // 20) + b'""]',
        lambda data: shortened(data, len(data) // 5),
        n=2_000,
    ),
]
