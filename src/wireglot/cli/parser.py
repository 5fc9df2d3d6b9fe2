"""The parser of the command line: a list of commands, each with its options and what runs it.

No command imports at its top what it needs only to do its work: `--help` answers at once.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from wireglot import __version__
from wireglot.cli import listing
from wireglot.cli.argument_parser import ArgumentParser, Commands, add_config, positive
from wireglot.cli.terminal import OK, UNUSABLE, complain, one_line

_COMPLETION_EXAMPLES: Final = """\
examples:
  wireglot completion bash > ~/.local/share/bash-completion/completions/wireglot
  wireglot completion zsh > ~/.zfunc/_wireglot      # a folder of your fpath
  wireglot completion fish > ~/.config/fish/completions/wireglot.fish
  eval "$(wireglot completion bash)"                # this shell only
"""


def _add_completion(commands: Commands) -> None:
    parser = commands.add_parser(
        "completion",
        help="print a shell completion script",
        description="Print a script that lets a shell complete commands, options and their values.",
        epilog=_COMPLETION_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(run=_run_completion)


def _run_completion(arguments: argparse.Namespace) -> int:
    from wireglot.cli.completion import script

    print(script(arguments.shell, arguments.root), end="")
    return OK


def _add_config(commands: Commands) -> None:
    parser = commands.add_parser(
        "config",
        help="check a configuration, or approve it",
        description="check: report every problem with its place and what was expected there, or print the "
        "effective configuration. The exit status is 1 if there are problems. trust: approve a wireglot.toml "
        "that commands find in the current folder and that `wireglot init` did not write; it says where your "
        "keys and prompts go. A file whose content changes has to be approved again.",
    )
    parser.add_argument("action", choices=("check", "trust"), help="what to do with it")
    parser.add_argument("--config", metavar="FILE", help="the same as PATH, as `wireglot serve` spells it")
    parser.add_argument(
        "path", nargs="?", metavar="PATH", help="the file (default: the one `wireglot serve` would find)"
    )
    parser.set_defaults(run=_run_config)


def _run_config(arguments: argparse.Namespace) -> int:
    from wireglot.cli.config import approve, check

    if arguments.path and arguments.config:
        complain(f"both {one_line(arguments.path)} and --config name a file: say one of them")
        return UNUSABLE
    named = arguments.path or arguments.config
    return check(named) if arguments.action == "check" else approve(named)


def _add_demo(commands: Commands) -> None:
    parser = commands.add_parser(
        "demo",
        help="see a gateway answer a real request in every dialect",
        description="Start a gateway on a free port with the model that lives inside it, ask it over HTTP in "
        "every dialect, stream a tool call, and show what went over the wire.",
    )
    parser.set_defaults(run=_run_demo)


def _run_demo(_: argparse.Namespace) -> int:
    from wireglot.cli.demo import demonstrate

    return demonstrate()


def _add_doctor(commands: Commands) -> None:
    parser = commands.add_parser(
        "doctor",
        help="diagnose problems and suggest fixes",
        description="Look at the configuration, keys, the way to each provider, the clock, the store, the "
        "port, versions, prices, unsafe settings and the clients on this machine. Each finding comes with "
        "its fix. Providers are asked once and no tokens are spent. The exit status is 1 if there are "
        "problems.",
    )
    parser.add_argument(
        "--fix",
        action="store_true",
        help="fix what can be fixed safely: file modes, leftover files",
    )
    parser.add_argument("--offline", action="store_true", help="ask nobody: nothing is sent")
    parser.add_argument("--json", action="store_true", help="print JSON lines, one a finding")
    add_config(parser)
    parser.set_defaults(run=_run_doctor)


def _run_doctor(arguments: argparse.Namespace) -> int:
    from wireglot.cli.doctor.examination import examine

    return examine(arguments.config, fix=arguments.fix, offline=arguments.offline, as_json=arguments.json)


_IMPORT_EXAMPLES: Final = """\
examples:
  wireglot import litellm config.yaml -o wireglot.toml
  wireglot import ccr ~/.claude-code-router/config.json -o wireglot.toml
  wireglot import litellm - < config.yaml | less

No key is written into the new file. One in clear text becomes env:NAME, with a
name to set; --keep-keys keeps it where `wireglot run` keeps keys.
"""
_IMPORTED_PROGRAMS: Final = {
    "litellm": ("LiteLLM's proxy", "config.yaml"),
    "ccr": ("claude-code-router", "config.json"),
}


def _add_import(commands: Commands) -> None:
    parser = commands.add_parser(
        "import",
        help="turn the configuration of another gateway into one of this",
        description="Turn the configuration of another gateway into a commented wireglot.toml. Every setting "
        "of the source is carried over, or listed at the end of the file with the reason and an alternative.",
        epilog=_IMPORT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    programs = parser.add_subparsers(dest="program", metavar="PROGRAM", required=True, help="whose it is")
    for name, (title, file) in _IMPORTED_PROGRAMS.items():
        each = programs.add_parser(name, help=f"{file} of {title}", description=f"Import {file} of {title}.")
        each.add_argument("source", metavar="FILE", help=f"the {file}; - for standard input")
        each.add_argument(
            "-o", "--output", metavar="FILE", default="-", help="the new file (default: standard output)"
        )
        each.add_argument("--force", action="store_true", help="write over a file that is there")
        each.add_argument(
            "--keep-keys",
            action="store_true",
            help="keep the source's keys for the gateway, in a file for you alone",
        )
    parser.set_defaults(run=_run_import)


def _run_import(arguments: argparse.Namespace) -> int:
    from wireglot.cli.import_.importing import ImportOptions, import_file

    return import_file(
        ImportOptions(
            arguments.program,
            arguments.source,
            output=arguments.output,
            force=arguments.force,
            keep_keys=arguments.keep_keys,
        )
    )


def _add_init(commands: Commands) -> None:
    parser = commands.add_parser(
        "init",
        help="find providers and write a configuration",
        description="Find the keys of providers in the environment and among those kept by `wireglot run`, "
        "and model servers on this machine; ask each one once for its list of models, which costs nothing; "
        "and write a commented wireglot.toml. It holds the names of keys, and never a key.",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="where to write it (default: $WIREGLOT_CONFIG, or wireglot.toml here; - for standard output)",
    )
    parser.add_argument(
        "--user", action="store_true", help="write it where it is found from every folder of yours"
    )
    parser.add_argument("--force", action="store_true", help="write over a file that is there")
    parser.add_argument("--offline", action="store_true", help="ask nobody: nothing is sent")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    parser.set_defaults(run=_run_init)


def _run_init(arguments: argparse.Namespace) -> int:
    from wireglot.cli.init import InitOptions, set_up

    return set_up(
        InitOptions(
            output=arguments.output or "",
            user=arguments.user,
            force=arguments.force,
            offline=arguments.offline,
            json=arguments.json,
        )
    )


_INSPECT_EXAMPLES: Final = """\
examples:
  wireglot inspect                          the gateway of this configuration
  wireglot inspect --url http://gateway:8484
  wireglot inspect report.wgtrace.json      an exported exchange, without any gateway
"""


def _add_inspect(commands: Commands) -> None:
    parser = commands.add_parser(
        "inspect",
        help="open the inspector's page: what passes through, both sides of it",
        description="Open the inspector's page in a browser, and print its address: that of a gateway that "
        "runs, or, for the file of an exported exchange, a page of its own on this machine alone, until "
        "it is interrupted.",
        epilog=_INSPECT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="an exported exchange (`wireglot trace export`)"
    )
    where = parser.add_mutually_exclusive_group()
    add_config(where)
    where.add_argument("--url", metavar="URL", help="the gateway that listens there")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.set_defaults(run=_run_inspect)


def _run_inspect(arguments: argparse.Namespace) -> int:
    from wireglot.cli import inspect

    return inspect.run(arguments)


_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_LONGEST_SECONDS: Final = 5200 * 7 * 86400
_MAX_AMOUNT: Final = 10**15
"""Of tokens, requests or money: more is a slip, and no store takes it."""

_KEYS_EXAMPLES: Final = """\
examples:
  KEY=$(wireglot keys create laptop)
  wireglot keys create team-a --models 'claude-*,fast' --requests-per-minute 60 --cost-per-month 50
  wireglot keys update team-a --concurrent 5 --cost-per-month 0
  wireglot keys rotate team-a --overlap 1h
  wireglot keys list
  wireglot keys delete team-a
  wireglot keys off

The new key is all that goes to standard output, once: only its hash is kept.
"""

_KEY_LIMITS: Final = {
    "requests_per_minute": "requests in any minute",
    "tokens_per_minute": "tokens in any minute, input and output together",
    "concurrent": "requests answered at once",
    "tokens_per_day": "tokens a day (UTC)",
    "tokens_per_month": "tokens a month (UTC)",
    "cost_per_day": "money a day, in the currency of the configuration",
    "cost_per_month": "money a month",
}


def _add_keys(commands: Commands) -> None:
    parser = commands.add_parser(
        "keys",
        help="make and revoke keys for clients",
        description="Make and revoke keys for clients of the gateway that runs on this machine, or of the "
        "one at --url; if none runs, in the store of the configuration. All of it may be done while the "
        "gateway runs; every process of it knows within seconds.",
        epilog=_KEYS_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, help="what to do")
    create = actions.add_parser("create", help="make a key, and print it this once")
    _add_key_name(create)
    _add_key_limits(create)
    update = actions.add_parser("update", help="change what a key may do; 0 takes a limit off")
    _add_key_name(update)
    _add_key_limits(update)
    actions.add_parser("list", help="all keys, and what they may do")
    _add_key_name(actions.add_parser("revoke", help="revoke a key"))
    delete = actions.add_parser("delete", help="forget a key and all that its caller stored")
    _add_key_name(delete)
    off = actions.add_parser("off", help="delete all stored keys: the gateway asks for none again")
    for action in (delete, off):
        action.add_argument("--yes", action="store_true", help="do not ask")
    rotate = actions.add_parser("rotate", help="replace a key by a new one for the same caller")
    _add_key_name(rotate)
    rotate.add_argument(
        "--overlap",
        type=_seconds,
        default=0,
        metavar="TIME",
        help="how long the old one still works: 30m, 1h, 7d",
    )
    for action in actions.choices.values():
        action.add_argument("--json", action="store_true", help="print JSON")
        add_config(action)
        action.add_argument(
            "--url",
            metavar="URL",
            help="use the admin API of the gateway there; its secret is in WIREGLOT_ADMIN_SECRET",
        )
    parser.set_defaults(run=_run_keys)


def _run_keys(arguments: argparse.Namespace) -> int:
    from wireglot.cli.keys import Task, change_keys

    task = Task(arguments.action, as_json=arguments.json)
    if arguments.action not in ("list", "off"):
        task.name = arguments.name
    if arguments.action in ("create", "update"):
        task.fields = _key_fields(arguments)
    if arguments.action in ("delete", "off"):
        task.sure = arguments.yes
    if arguments.action == "rotate":
        task.overlap_seconds = arguments.overlap
    return change_keys(task, config_file=arguments.config, url=arguments.url)


def _key_fields(arguments: argparse.Namespace) -> dict[str, Any]:
    """What was named on the command line, as the admin API spells it."""
    fields = {name: value for name in _KEY_LIMITS if (value := getattr(arguments, name)) is not None}
    if arguments.models is not None:
        fields["models"] = arguments.models
    if arguments.expires is not None:
        expires = arguments.expires
        if isinstance(expires, int):
            expires = (datetime.now(UTC) + timedelta(seconds=expires)).isoformat(timespec="seconds")
        fields["expires"] = expires
    return fields


def _add_key_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="what the caller is called")


def _add_key_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--models", type=_names, metavar="A,B", help="names and patterns it may ask for (default: all)"
    )
    parser.add_argument(
        "--expires", type=_expiry, metavar="TIME|DATE", help="30d, 12h, or a date like 2027-01-31"
    )
    for name, meaning in _KEY_LIMITS.items():
        money = name.startswith("cost_")
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=_money if money else _count,
            metavar="2.50" if money else "N",
            help=meaning,
        )


def _seconds(text: str) -> int:
    found = re.fullmatch(r"(\d{1,9})([smhdw]?)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected a time like 30m, 1h or 7d, got {text!r}")
    seconds = int(found[1]) * _UNIT_SECONDS[found[2] or "s"]
    if seconds > _LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(f"expected at most 5200w (100 years), got {text!r}")
    return seconds


def _expiry(text: str) -> int | str:
    """Seconds from now, or a date."""
    return _seconds(text) if re.fullmatch(r"\d+[smhdw]", text) else text


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _count(text: str) -> int:
    if not re.fullmatch("[0-9]{1,16}", text) or int(text) > _MAX_AMOUNT:
        raise argparse.ArgumentTypeError(f"expected a whole number up to {_MAX_AMOUNT}, got {text[:40]!r}")
    return int(text)


def _money(text: str) -> float:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or not 0 <= amount <= _MAX_AMOUNT:
        raise argparse.ArgumentTypeError(f"expected an amount of money like 2.50, got {text!r}")
    return float(amount)


def _add_models(commands: Commands) -> None:
    parser = commands.add_parser(
        "models",
        help="list the models that can be asked now",
        description="List the models that a gateway with this configuration and environment serves: context "
        "and output in tokens, what else they take, and their price for a million tokens in and out. Then "
        "the providers that are off, and why.",
    )
    parser.add_argument(
        "pattern", nargs="?", metavar="NAME", default="", help="only those whose name holds this text"
    )
    parser.add_argument("--all", action="store_true", help="also the models of providers that are off")
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    add_config(parser)
    parser.set_defaults(run=_run_models)


def _run_models(arguments: argparse.Namespace) -> int:
    from wireglot.cli.models import show_models

    return show_models(
        arguments.pattern, named=arguments.config, everything=arguments.all, as_json=arguments.json
    )


def _add_pairs(commands: Commands) -> None:
    parser = commands.add_parser(
        "pairs",
        help="translate a bundled conversation between all dialects and show it",
        description="Translate a bundled coding-agent conversation between all ordered pairs of the four "
        "main dialects, and show one request beside its translation.",
    )
    parser.add_argument(
        "--from", dest="source", metavar="DIALECT", default="anthropic", help="the request shown on the left"
    )
    parser.add_argument(
        "--to", dest="target", metavar="DIALECT", default="gemini", help="and its translation"
    )
    parser.set_defaults(run=_run_pairs)


def _run_pairs(arguments: argparse.Namespace) -> int:
    from wireglot.cli.pairs import show_pairs

    return show_pairs(arguments.source, arguments.target)


_DIALECTS: Final = ("anthropic", "openai-chat", "openai-responses", "gemini")


def _add_probe(commands: Commands) -> None:
    parser = commands.add_parser(
        "probe",
        help="test an endpoint that claims to speak a dialect",
        description="Put a provider, another gateway or this one to the test with a published list of cases: "
        "streams, tool calls, ids, stop reasons, usage, reasoning over turns, errors, schemas, fields. The "
        "possible cost is printed before anything is sent. The exit status is 1 if a required case failed.",
    )
    parser.add_argument(
        "base_url",
        metavar="BASE_URL",
        nargs="?",
        default="",
        help="as a client has it: http://127.0.0.1:8484",
    )
    parser.add_argument(
        "--dialect", metavar="DIALECT", choices=_DIALECTS, help=f"one of {', '.join(_DIALECTS)}"
    )
    parser.add_argument(
        "--model", metavar="NAME", help="which model is asked (default: the first that is listed)"
    )
    parser.add_argument("--key", metavar="KEY", help="the key for it; better: --key-env")
    parser.add_argument("--key-env", metavar="NAME", help="the variable that holds the key")
    parser.add_argument(
        "--only",
        metavar="CASES",
        action="append",
        default=[],
        help="these cases: ids, themes or patterns, with commas",
    )
    parser.add_argument("--large", action="store_true", help="also the cases that send very much")
    parser.add_argument(
        "--budget",
        metavar="AMOUNT",
        help="end before more could be spent: tokens (200000), or money of a model that is priced (0.50USD)",
    )
    parser.add_argument(
        "--timeout",
        type=positive,
        metavar="SECONDS",
        help="how long an answer may keep silent (default: 120; two and a half times that for all of it)",
    )
    parser.add_argument("--list", action="store_true", help="list the cases, and ask nobody")
    parser.add_argument("--dry-run", action="store_true", help="print what would be sent, and ask nobody")
    parser.add_argument("--yes", action="store_true", help="do not ask before a host elsewhere is asked")
    parser.add_argument("--all", action="store_true", help="print the cases that passed, too")
    parser.add_argument("--json", metavar="FILE", help="write the report with all evidence as JSON")
    parser.add_argument("--html", metavar="FILE", help="write it as a page")
    parser.add_argument("--catalog", metavar="FILE", help="write what was learned as a file for the catalog")
    parser.set_defaults(run=_run_probe)


def _run_probe(arguments: argparse.Namespace) -> int:
    from wireglot.cli.probe import probe

    return probe(arguments)


_CLIENTS: Final = ("aider", "claude", "codex", "gemini", "kimi", "llm", "opencode", "qwen")
_RUN_EXAMPLES: Final = """\
examples:
  wireglot run claude
  wireglot run claude --model kimi/kimi-k3
  wireglot run codex --model demo/demo -- exec "Say hello"
  wireglot run --env openai -- python my_agent.py
  eval "$(wireglot run claude --print-env)"

CLIENT is one of aider, claude, codex, gemini, kimi, llm, opencode, qwen. It keeps
its own home, history, login and project settings: all that differs is in variables
and options that end with it. Its exit status is the command's.
"""


def _add_run(commands: Commands) -> None:
    parser = commands.add_parser(
        "run",
        help="start a client with a gateway: claude, codex, gemini and others",
        description="Start a client on the gateway that runs on this machine, or else on one of its own, "
        "which ends with it. Without a key of any provider, a demo model answers.",
        epilog=_RUN_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    assert isinstance(parser, ArgumentParser)
    parser.takes_rest = True
    parser.usage = "wireglot run [CLIENT] [options] [-- ARGUMENTS OF THE CLIENT]"
    client = parser.add_argument("client", nargs="?", metavar="CLIENT", help="the client to start")
    setattr(client, "completes", _CLIENTS)  # noqa: B010 - for shells; other names are refused with a hint
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="PROVIDER/MODEL to ask (default: what the client asks for)",
    )
    parser.add_argument(
        "--env",
        action="append",
        choices=("anthropic", "openai", "gemini"),
        default=[],
        help="set the variables of this vendor's SDKs for the command behind --; can be repeated",
    )
    add_config(parser)
    parser.add_argument(
        "--url", metavar="URL", help="use the gateway there; its client key is in WIREGLOT_KEY"
    )
    parser.add_argument("--private", action="store_true", help="start a gateway of its own in any case")
    parser.add_argument("--log", metavar="FILE", help="append what a gateway of its own logs")
    parser.add_argument(
        "--print-env", action="store_true", help="only print the variables, for eval in a shell"
    )
    parser.set_defaults(run=_run_run)


def _run_run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.run.launch import Launch, launch

    task = Launch(
        client=arguments.client or "",
        families=tuple(dict.fromkeys(arguments.env)),
        arguments=tuple(arguments.rest),
        model=arguments.model or "",
        config=arguments.config,
        url=arguments.url or "",
        private=arguments.private,
        log=arguments.log,
        print_env=arguments.print_env,
    )
    problem = task.problem()
    if problem:
        complain(f"{problem} (see wireglot run --help)")
        return UNUSABLE
    return launch(task)


_SERVER: Final = ("host", "port", "workers", "log")
"""Options that stand in for the settings of the same name in the section [server]."""

_MODELS: Final = "WIREGLOT_MODELS"
_LAST_PORT: Final = 65535
_TRACE_MINUTES: Final = 15.0
_TRACE_MINUTES_MOST: Final = 24 * 60


def _add_serve(commands: Commands) -> None:
    parser = commands.add_parser(
        "serve",
        help="run the gateway",
        description="Run the gateway: any client, any provider. Without a configuration, providers whose "
        "keys are in the environment are on; without any key, a demo model that lives in the process.",
    )
    parser.add_argument(
        "--config", metavar="FILE", help="the configuration (default: wireglot.toml, if there)"
    )
    parser.add_argument("--host", metavar="ADDRESS", help="where to listen (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, metavar="N", help="and on which port (default: 8484; 0: any)")
    parser.add_argument("--workers", type=positive, metavar="N", help="processes that share the port")
    parser.add_argument(
        "--log", choices=("auto", "json", "pretty", "off"), help="how to log requests (default: auto)"
    )
    parser.add_argument(
        "--model",
        type=_rule,
        action="append",
        default=[],
        metavar="NAME=PROVIDER/MODEL",
        help="send a model name or pattern to a provider's model, before what [models] says; can be repeated",
    )
    parser.add_argument(
        "--trace",
        type=_minutes,
        nargs="?",
        const=_TRACE_MINUTES,
        metavar="MINUTES",
        help=f"record full request and response bodies for MINUTES (default: {_TRACE_MINUTES:g})",
    )
    parser.set_defaults(run=_run_serve)


def _run_serve(arguments: argparse.Namespace) -> int:
    from wireglot.cli.serve import serve

    options = {}
    if arguments.model:
        if not os.environ.get(_MODELS):
            options[_MODELS] = "--model"
        # The variable reaches every worker, and its entries stand before the file's.
        rules = [*arguments.model, os.environ.get(_MODELS, "")]
        os.environ[_MODELS] = ";".join(filter(None, rules))
    given = {name: getattr(arguments, name) for name in _SERVER}
    server: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    until = time.time() + arguments.trace * 60 if arguments.trace else 0.0
    return serve(arguments.config, {"server": server} if server else {}, options, record_until=until)


def _minutes(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,5}(\.[0-9]{1,3})?", text) or not 0 < float(text) <= _TRACE_MINUTES_MOST:
        raise argparse.ArgumentTypeError(
            f"expected minutes, {_TRACE_MINUTES_MOST} at most, got {text[:40]!r}"
        )
    return float(text)


def _port(text: str) -> int:
    if not re.fullmatch("[0-9]{1,5}", text) or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to {_LAST_PORT}, got {text[:40]!r}")
    return int(text)


def _rule(text: str) -> str:
    name, equals, targets = text.partition("=")
    if not equals or not name.strip() or not targets.strip() or ";" in text:
        raise argparse.ArgumentTypeError(f"expected NAME=PROVIDER/MODEL, got {text!r}")
    return text


def _add_smoke(commands: Commands) -> None:
    parser = commands.add_parser(
        "smoke",
        help="send one test request to every endpoint",
        description="Exercise whole answers, streams, tools, model lists and token counts on every endpoint "
        "of a gateway, and print what passed, how long it took and what was lost. The exit status is the "
        "number of failures.",
    )
    parser.add_argument(
        "--url",
        metavar="URL",
        help="where a gateway listens (default: start one here, configured as `wireglot serve` would be)",
    )
    parser.add_argument("--key", metavar="KEY", help="a client key, where the gateway asks for one")
    parser.add_argument("--provider", metavar="NAME", help="test the first model listed for this provider")
    parser.add_argument("--model", metavar="NAME", help="test this model (with --provider: of that provider)")
    parser.set_defaults(run=_run_smoke)


def _run_smoke(arguments: argparse.Namespace) -> int:
    from wireglot.cli.smoke import smoke_other, smoke_own

    key = arguments.key or ""
    if arguments.url is None:
        return smoke_own(key, arguments.provider, arguments.model)
    return smoke_other(arguments.url, key, arguments.provider, arguments.model)


def _add_store(commands: Commands) -> None:
    parser = commands.add_parser(
        "store",
        help="look after what the gateway remembers",
        description="Look after the store of the gateway that runs here, or else of a configuration. All of "
        "it may be done while the gateway runs.",
    )
    add_config(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, help="what to do with it")
    stats = actions.add_parser("stats", help="what is in it, and how much")
    stats.add_argument("--json", action="store_true", help="as JSON")
    actions.add_parser(
        "prune",
        help="delete expired and over-limit data now",
        description="Delete expired data and data over its limit, as [store.keep] says. The gateway "
        "does the same every few minutes.",
    )
    export = actions.add_parser(
        "export",
        help="write everything to a file",
        description="Write everything as JSON lines. What callers said stays sealed: only a gateway with the "
        "same secret can read it.",
    )
    export.add_argument("file", nargs="?", metavar="FILE", help="where to (default: standard output)")
    load = actions.add_parser(
        "import",
        help="read what `export` wrote",
        description="Read what `export` wrote, from this store or another. What is there already stays.",
    )
    load.add_argument("file", nargs="?", metavar="FILE", help="where from (default: standard input)")
    wipe = actions.add_parser(
        "wipe",
        help="remove all data of one caller",
        description="Remove every stored response, conversation and reasoning value of one caller. Its usage "
        "stays in the books, without the names of its sessions.",
    )
    wipe.add_argument(
        "caller", metavar="CALLER", help='the name of its key ("local" where there are no keys)'
    )
    for action in (stats, wipe):
        action.add_argument(
            "--url",
            metavar="URL",
            help="use the admin API of the gateway there; its secret is in WIREGLOT_ADMIN_SECRET",
        )
    parser.set_defaults(run=_run_store, url=None)


def _run_store(arguments: argparse.Namespace) -> int:
    from wireglot.cli import store

    return store.run(arguments)


_TRACE_EXAMPLES: Final = """\
examples:
  wireglot trace list
  wireglot trace show last
  wireglot trace diff ID                       both requests, part by part
  wireglot trace diff ID OTHER                 two answers
  wireglot trace export ID -o report.wgtrace.json
  wireglot trace replay report.wgtrace.json --offline
  wireglot trace replay ID --to kimi/kimi-k3
  wireglot trace replay ID --raw                what went upstream, once more

An ID may be the file of an exported trace, or `last`: the newest that was recorded. Bodies are recorded as
[trace] in the configuration says, or for some minutes by `wireglot serve --trace`.
"""


def _add_trace(commands: Commands) -> None:
    parser = commands.add_parser(
        "trace",
        help="look at recorded exchanges, both sides of each",
        description="Look at recorded exchanges: what the client asked, what went upstream, what came back, "
        "what the client got, and what was lost between them. They are read from the gateway that "
        "runs on this machine or the one at --url; if none runs, from the store of the configuration; or "
        "from a file.",
        epilog=_TRACE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, help="what to do")
    listed = actions.add_parser("list", help="the latest exchanges")
    _add_gateway(listed)
    listed.add_argument(
        "--limit", type=positive, default=20, metavar="NUMBER", help="at most so many (default: 20)"
    )
    for name, about in (
        ("model", "only this model, as it was asked for or as the provider names it"),
        ("provider", "only this provider"),
        ("client", "only this program (claude-code, codex)"),
        ("status", "only this status: 200, 4xx, running, failed, left"),
        ("loss", "only with such a loss: a grade (serious) or a feature (cache_marker)"),
        ("session", "only this conversation"),
        ("key", "only the client key of this name"),
    ):
        listed.add_argument(f"--{name}", metavar=name.upper(), help=about)
    listed.add_argument("--search", metavar="TEXT", help="only what has this text, in its row or its bodies")
    listed.add_argument("--json", action="store_true", help="as JSON")
    show = actions.add_parser("show", help="one exchange: all four bodies, losses, times")
    _add_exchange(show)
    show.add_argument("--full", action="store_true", help="unfold everything, and each event of streams")
    diff = actions.add_parser(
        "diff",
        help="both requests of an exchange, part by part; or two answers",
        description="Both requests of an exchange, part by part: what was kept (=), written otherwise (~), "
        "lost (-), put in (+). With another ID: how the two answers differ.",
    )
    _add_exchange(diff)
    diff.add_argument(
        "other", nargs="?", metavar="OTHER", help="another ID, or file, to compare answers with"
    )
    diff.add_argument("--full", action="store_true", help="with the values of both sides")
    export = actions.add_parser(
        "export",
        help="write an exchange to one file, for a report or a test",
        description="Write an exchange to one file that can be attached to a report, shown by `trace show`, "
        "and replayed by a test (wireglot.testing.replay). Keys are not in it; what was said is.",
    )
    _add_exchange(export, json=False)
    export.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="where to (default: standard output, unless it is a terminal; -: also then)",
    )
    export.add_argument("--gzip", action="store_true", help="packed")
    replay = actions.add_parser(
        "replay",
        help="translate it again and compare; or send it again",
        description="With --offline: translate both ways again and compare with what was recorded; nothing "
        "is sent. Without: have the gateway send the request again, after saying who pays and what it may "
        "cost.",
    )
    _add_exchange(replay)
    replay.add_argument("--offline", action="store_true", help="send nothing")
    replay.add_argument("--to", metavar="PROVIDER/MODEL", help="send it there instead")
    replay.add_argument(
        "--raw",
        action="store_true",
        help="send what went upstream, in the dialect it went in: nothing is translated",
    )
    replay.add_argument("--yes", action="store_true", help="do not ask before it is sent")
    parser.set_defaults(run=_run_trace)


def _add_exchange(parser: argparse.ArgumentParser, *, json: bool = True) -> None:
    parser.add_argument("id", metavar="ID", help="the exchange, `last`, or the file of an exported one")
    _add_gateway(parser)
    if json:
        parser.add_argument("--json", action="store_true", help="as JSON")


def _add_gateway(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    add_config(where)
    where.add_argument(
        "--url",
        metavar="URL",
        help="ask the gateway that listens there; its admin secret, or a client key for its own exchanges, "
        "is read from $WIREGLOT_ADMIN_SECRET or $WIREGLOT_KEY",
    )


def _run_trace(arguments: argparse.Namespace) -> int:
    from wireglot.cli import trace

    return trace.run(arguments)


_TRANSLATE_DESCRIPTION: Final = """\
Translate one document from standard input to standard output, or, with --jsonl, a whole file of them.

What could not be carried over (the losses) is printed on standard error, or written to --losses FILE as JSON.
"""

_TRANSLATE_EXAMPLES: Final = """\
examples:
  wireglot translate request  --from anthropic --to gemini --model gemini-2.5-pro < in.json > out.json
  wireglot translate response --from gemini --to openai-chat --request asked.json < in.json > out.json
  wireglot translate stream   --from gemini --to anthropic < in.sse > out.sse
  wireglot translate --jsonl --jobs 4 < cases.jsonl > results.jsonl

exit status:
  0  translated (with --jsonl: every line)
  1  the stream broke off or reported an error (with --jsonl: at least one line failed)
  2  bad input or an unusable command line; one line on standard error says where and what was expected
"""


def _add_translate(commands: Commands) -> None:
    parser = commands.add_parser(
        "translate",
        help="translate a request, a response, a stream, or a file of them",
        description=_TRANSLATE_DESCRIPTION,
        epilog=_TRANSLATE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "kind",
        nargs="?",
        choices=("request", "response", "stream"),
        help="what the one document is (not with --jsonl)",
    )
    parser.add_argument(
        "--from", dest="source", metavar="DIALECT", help="the dialect the input is written in"
    )
    parser.add_argument("--to", dest="target", metavar="DIALECT", help="the dialect to write")
    parser.add_argument(
        "--model", metavar="NAME", help="the model the request is for; it replaces the one in the body"
    )
    parser.add_argument(
        "--provider", metavar="NAME", help="the provider whose limits apply (see `wireglot providers`)"
    )
    parser.add_argument("--strict", action="store_true", help="a loss is an error: all or nothing")
    parser.add_argument("--in", dest="input", metavar="FILE", help="read this file instead of standard input")
    parser.add_argument(
        "--out", dest="output", metavar="FILE", help="write this file instead of standard output"
    )

    single = parser.add_argument_group("one document")
    single.add_argument(
        "--request",
        metavar="FILE",
        help="the client's original request, in the dialect of --to (response and stream only)",
    )
    single.add_argument(
        "--status",
        type=_status,
        metavar="CODE",
        help="the HTTP status the response came with (response only)",
    )
    single.add_argument(
        "--framing",
        choices=("sse", "json-array"),
        help="how to write a Gemini stream (stream only; default: sse)",
    )
    single.add_argument(
        "--losses", metavar="FILE", help="write the losses there as a JSON array instead of telling them"
    )
    single.add_argument("--pretty", action="store_true", help="indent the JSON written")

    lines = parser.add_argument_group("many documents")
    lines.add_argument(
        "--jsonl",
        action="store_true",
        help="read one case a line and write one result a line; --from, --to, --model and --provider "
        "stand in where a line has none of its own",
    )
    lines.add_argument(
        "--jobs",
        type=positive,
        default=1,
        metavar="N",
        help="work in N processes; the order stays (default: 1)",
    )
    lines.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show progress on standard error (default: if it is a terminal)",
    )
    parser.set_defaults(run=_run_translate)


def _run_translate(arguments: argparse.Namespace) -> int:
    from wireglot.cli.translate import translate

    return translate(arguments)


def _status(text: str) -> int:
    if not re.fullmatch("[1-5][0-9]{2}", text):
        raise argparse.ArgumentTypeError(f"expected an HTTP status like 429, got {text[:40]!r}")
    return int(text)


_USAGE_EXAMPLES = """\
examples:
  wireglot usage                              the last 30 days, by day and model
  wireglot usage --by key,model --since 7d    who used what this week
  wireglot usage --by day --chart             one bar a day
  wireglot usage --url http://gateway:8484 --admin --by provider --json
"""


def _add_usage(commands: Commands) -> None:
    parser = commands.add_parser(
        "usage",
        help="tell what was used, and what it cost",
        description="Report what was used, and what it cost: from the gateway that runs on this machine or "
        "the one at --url; if none runs, from the store of the configuration.",
        epilog=_USAGE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    where = parser.add_mutually_exclusive_group()
    add_config(where)
    where.add_argument("--url", metavar="URL", help="ask the gateway that listens there")
    parser.add_argument(
        "--api-key", metavar="KEY", help="with --url: the client key whose usage is meant (or $WIREGLOT_KEY)"
    )
    parser.add_argument(
        "--admin",
        action="store_true",
        help="with --url: everybody's usage; the admin secret is read from $WIREGLOT_ADMIN_SECRET",
    )
    parser.add_argument(
        "--by",
        default="day,model",
        metavar="NAMES",
        help="what to add up by: key, model, provider, day, session, outcome, operation (default: day,model)",
    )
    parser.add_argument(
        "--since",
        default="30d",
        metavar="TIME",
        help="from when on: 12h, 7d, 4w ago, YYYY-MM-DD or unix seconds (default: 30d)",
    )
    parser.add_argument("--until", metavar="TIME", help="and until when; a day is meant to its end")
    parser.add_argument("--key", metavar="NAME", help="only the client key of this name")
    parser.add_argument("--model", metavar="NAME", help="only this model (as the provider names it)")
    parser.add_argument("--provider", metavar="NAME", help="only this provider")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument(
        "--chart",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show a bar for each day (default: on a terminal)",
    )
    parser.set_defaults(run=_run_usage)


def _run_usage(arguments: argparse.Namespace) -> int:
    from wireglot.cli import usage

    return usage.run(arguments)


_COMMANDS: Final[tuple[Callable[[Commands], None], ...]] = (
    _add_init,
    _add_run,
    _add_serve,
    _add_models,
    _add_doctor,
    _add_config,
    _add_import,
    _add_translate,
    _add_demo,
    _add_pairs,
    _add_smoke,
    _add_probe,
    _add_inspect,
    _add_trace,
    _add_usage,
    _add_store,
    _add_keys,
    listing.add_commands,
    _add_completion,
)
"""In the order of the help."""

_EXAMPLES: Final = """\
examples:
  wireglot init
  wireglot demo
  wireglot run claude
  wireglot run codex --model kimi/kimi-k3 -- exec "What does this project do?"
  wireglot serve
  wireglot translate request --from anthropic --to gemini < in.json > out.json
  wireglot translate --jsonl < cases.jsonl > results.jsonl
  wireglot dialects
"""


class _Version(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, **rest: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **rest)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(f"wireglot {__version__}")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """What it parses has the name of the `command`, if there was one, then the function to `run`, and this
    parser as the `root`."""
    parser = ArgumentParser(
        prog="wireglot",
        description="Translate between the API dialects of language models, and say what could not cross.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action=_Version, default=argparse.SUPPRESS, help="show the version and exit"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=ArgumentParser)
    for add in _COMMANDS:
        add(commands)
    parser.set_defaults(root=parser)
    return parser
