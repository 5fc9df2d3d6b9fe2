"""The configuration file: read, shown without its secrets, and compared."""

from __future__ import annotations

from tests.laws.bounded import Row
from tests.laws.entry_points import CONFIG
from wireglot.gateway.config import read
from wireglot.gateway.config.edit import HiddenLines
from wireglot.gateway.config.problems import ConfigError
from wireglot.http.redaction import Redactor


def shown(text: str) -> str:
    return HiddenLines(text, Redactor(["a-very-secret-word"])).text


def compared(text: str) -> list[str]:
    lines = text.split("\n")
    return HiddenLines(text, Redactor()).difference("\n".join(reversed(lines)))


ROWS = [
    Row("an open quote and backslashes", lambda n: '# api_key = "' + "\\a" * n, shown),
    Row("three open quotes and backslashes", lambda n: '# api_key = """' + "\\a" * n, shown),
    Row("many fields with open quotes", lambda n: "x = {" + ',token="a\\' * n, shown),
    Row("lists in lists", lambda n: "x = {" + ",token=[" * n + "]" * n, shown),
    Row("lists that stay open", lambda n: "x = {" + ',token=["a",' * n, shown),
    Row("references in a list", lambda n: "tokens = [" + '"env:a" ' * n, shown),
    Row("names that are almost those of secrets", lambda n: "a-key" * n, shown),
    Row("lines of text", lambda n: 'token = """\n' + "a\n" * n + '"""', shown, n=300),
    Row("lines in another order", lambda n: "\n".join(map(str, range(n))), compared, n=300),
    Row(
        "a long key",
        lambda n: "a." * n + "b = 1",
        lambda text: read.parse(text.encode(), "f"),
        refuses=(ConfigError,),
    ),
    Row(
        "nested lists",
        lambda n: "a = " + "[" * n,
        lambda text: read.parse(text.encode(), "f"),
        refuses=(ConfigError,),
    ),
    Row(
        "many tables",
        lambda n: "\n".join(f"[a.t{x}]\nb = 1" for x in range(n)),
        lambda text: read.parse(text.encode(), "f"),
        entry=CONFIG,
    ),
    Row(
        "many lists of tables", lambda n: "[[a.b]]\nc = 1\n" * n, lambda text: read.parse(text.encode(), "f")
    ),
]
