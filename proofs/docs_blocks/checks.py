"""Blocks that are not programs, each checked by who reads such a thing."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from proofs.docs_blocks.desk import Failed
from proofs.docs_blocks.vendors import key_variables
from wireglot.gateway import config
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.errors import ClientFault
from wireglot_core.providers.spec import ProviderSpec

CONFIGURATION: Final = "wireglot.toml"
_KEY: Final = "made-up-0123456789abcdef"
_VALUES: Final = {
    "WIREGLOT_SECRET": _KEY * 2,
    "WIREGLOT_STORE": "postgresql://wireglot:made-up@127.0.0.1/wireglot",
    "WIREGLOT_SHARED": "redis://127.0.0.1:6379/0",
}
_SERVICE_ACCOUNT: Final = {
    "type": "service_account",
    "project_id": "my-project",
    "client_email": "wireglot@my-project.iam.gserviceaccount.com",
    "private_key": "made-up",
    "token_uri": "https://oauth2.googleapis.com/token",
}
_REQUESTS: Final = {
    "messages": ("openai-chat", "anthropic"),
    "contents": ("gemini",),
    "input": ("openai-responses",),
}
"""By which field a document is a request, and whose."""
_DIAGRAM: Final = re.compile(r"\s*(flowchart|graph|sequenceDiagram|stateDiagram-v2|classDiagram|timeline)\b")
_ENDED: Final = re.compile(r"^\s*(subgraph|alt|loop|opt|par|rect|critical)\b")


def configuration(text: str, before: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The document, laid over what stood there before; Failed where the gateway would not start with it."""
    document = _laid_over(before, tomllib.loads(text.replace("sha256:...", "sha256:" + 64 * "0")))
    named = re.findall(r'"env:(\w+)"', json.dumps(document))
    environ = {name: _VALUES.get(name, _KEY) for name in (*key_variables(), "WIREGLOT_SECRET", *named)}
    environ |= {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    for name in re.findall(r'"key_file": "([\w.-]+)"', json.dumps(document)):
        (folder / name).write_text(json.dumps(_SERVICE_ACCOUNT), encoding="utf-8")
    try:
        config.load(
            folder / CONFIGURATION, content=_toml(document).encode(), environ=environ, create_secret=False
        )
    except config.ConfigError as fault:
        raise Failed(str(fault)) from None
    return document


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The lines of a page over those that it showed before, table by table."""
    merged = dict(below)
    for name, value in above.items():
        under = merged.get(name)
        if isinstance(value, Mapping) and isinstance(under, Mapping):
            value = _laid_over(under, value)
        merged[name] = value
    return merged


def _toml(document: Mapping[str, Any]) -> str:
    return "".join(f"{json.dumps(name)} = {_toml_value(value)}\n" for name, value in document.items())


def _toml_value(value: Any) -> str:
    match value:
        case dict():
            inner = ", ".join(f"{json.dumps(name)} = {_toml_value(one)}" for name, one in value.items())
            return f"{{ {inner} }}"
        case list():
            return "[" + ", ".join(map(_toml_value, value)) + "]"
        case _:
            return json.dumps(value)


def toml_file(name: str, text: str, folder: Path) -> None:
    """Another program's file: by its name, where we know what belongs into it."""
    document = tomllib.loads(text)
    if "providers/catalog/" in name:
        try:
            msgspec.convert({"name": Path(name).stem, **document}, ProviderSpec)
        except msgspec.ValidationError as fault:
            raise Failed(str(fault)) from None
    if name == "recipe.toml":
        from proofs.bench import recipe  # heavy, and for one block of all pages
        from proofs.boards.recipe import BadRecipe

        try:
            path = folder / name
            path.write_text(text, encoding="utf-8")
            recipe.read(path)
        except BadRecipe as fault:
            raise Failed(str(fault)) from None


def json_text(text: str) -> None:
    """One document, or several lines of them. A request can be read by the dialect it is for."""
    try:
        documents = [json.loads(text)]
    except ValueError as whole:
        try:
            documents = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError:
            raise Failed(f"no JSON: {whole}") from None
    for document in documents:
        for mark, dialects in _REQUESTS.items():
            if isinstance(document, dict) and isinstance(document.get(mark), list):
                _request(document, dialects)


def _request(document: dict[str, Any], dialects: tuple[str, ...]) -> None:
    problems = []
    for name in dialects:
        try:
            dialect(name).parse_request(document, Context())
            return
        except ClientFault as fault:
            problems.append(f"{name}: {fault}")
    raise Failed("a request that nobody can read: " + "; ".join(problems))


def yaml_text(text: str, folder: Path) -> None:
    document = yaml.safe_load(text)
    if isinstance(document, dict) and "scrape_configs" in document and shutil.which("promtool"):
        path = folder / "prometheus.yml"
        path.write_text(
            re.sub(r"credentials_file: \S+?([,}])", r"credentials: made-up\1", text), encoding="utf-8"
        )
        _asked("promtool", "check", "config", str(path))


def nginx(text: str, folder: Path) -> str:
    """As a part of a server, if it is one. Empty, or why it was not checked."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        return "nginx is not here"
    inner = (
        text
        if re.search(r"^\s*server\s*\{", text, re.MULTILINE)
        else f"server {{ listen 127.0.0.1:8080; {text} }}"
    )
    whole = text if re.search(r"^\s*http\s*\{", text, re.MULTILINE) else f"events {{}}\nhttp {{ {inner} }}\n"
    path = folder / "nginx.conf"
    path.write_text(f"pid {folder}/nginx.pid;\nerror_log stderr;\n{whole}", encoding="utf-8")
    _asked(program, "-t", "-q", "-p", str(folder), "-e", "stderr", "-c", str(path))
    return ""


def unit(text: str, folder: Path) -> str:
    """A unit of systemd; programs it names need not be there."""
    if not shutil.which("systemd-analyze"):
        return "systemd is not here"
    path = folder / "wireglot.service"
    path.write_text(
        re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.MULTILINE), encoding="utf-8"
    )
    reported = subprocess.run(
        ["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False
    )
    about = [line for line in reported.stderr.splitlines() if path.name in line]
    if about:
        raise Failed("\n".join(about))
    return ""


def script(text: str, folder: Path) -> str:
    program = shutil.which("node")
    if program is None:
        return "node is not here"
    path = folder / "block.mjs"
    path.write_text(text, encoding="utf-8")
    _asked(program, "--check", str(path))
    return ""


def diagram(text: str) -> None:
    """Not a parser, but what one trips over when somebody types: kind, ends, brackets, quotes."""
    if not _DIAGRAM.match(text):
        raise Failed("not a kind of diagram that is known")
    lines = text.splitlines()
    opened = sum(_ENDED.match(line) is not None for line in lines)
    closed = sum(line.strip() == "end" for line in lines)
    if opened != closed:
        raise Failed(f"{opened} blocks begin, {closed} end")
    if "sequenceDiagram" in lines[0]:
        return
    for number, line in enumerate(lines, start=1):
        bare = re.sub(r'"[^"]*"', "", line)
        bare = re.sub(r"\|[^|]*\||<br/?>|[-=.]+>|<[-=.]+", "", bare)
        if (
            any(bare.count(one) != bare.count(other) for one, other in ("[]", "()", "{}"))
            or bare.count('"') % 2
        ):
            raise Failed(f"line {number} of it: {line.strip()}")


def _asked(*command: str) -> None:
    reported = subprocess.run(command, capture_output=True, text=True, check=False)
    if reported.returncode:
        raise Failed(reported.stdout + reported.stderr)
