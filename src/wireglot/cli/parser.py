"""The parser of the command line: a list of commands, each with its options and the module that runs it.

Modules that only the work of a command needs are not imported at its top: `--help` answers at once.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from wireglot import __version__
from wireglot.cli.argument_parser import ArgumentParser, Commands, add_config, flag, option, positive

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
        module="completion",
        help="print a shell completion script",
        description="Print a script that lets a shell complete commands, options and their values.",
        epilog=_COMPLETION_EXAMPLES,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish")


def _add_config(commands: Commands) -> None:
    parser = commands.add_parser(
        "config",
        module="config",
        help="check a configuration, or approve it",
        description="check: report every problem with its place and what was expected there, or print the "
        "effective configuration. The exit status is 1 if there are problems. trust: approve a wireglot.toml "
        "that commands find in the current folder and that `wireglot init` did not write; it says where your "
        "keys and prompts go. A file whose content changes has to be approved again.",
    )
    parser.add_argument("action", choices=("check", "trust"), help="what to do with it")
    option(parser, "--config", "FILE", "the same as PATH, as `wireglot serve` spells it")
    parser.add_argument(
        "path", nargs="?", metavar="PATH", help="the file (default: the one `wireglot serve` would find)"
    )


def _add_demo(commands: Commands) -> None:
    commands.add_parser(
        "demo",
        module="demo",
        help="show a gateway answer a real request in every dialect",
        description="Start a gateway on a free port with the model that lives inside it, ask it over HTTP in "
        "every dialect, stream a tool call, and show what went over the wire.",
    )


def _add_doctor(commands: Commands) -> None:
    parser = commands.add_parser(
        "doctor",
        module="doctor.examination",
        help="diagnose problems and suggest fixes",
        description="Look at the configuration, keys, the way to each provider, the clock, the store, the "
        "port, versions, prices, unsafe settings and the clients on this machine. Each finding comes with "
        "its fix. Each provider gets one request, which costs no tokens. The exit status is 1 if there are "
        "problems.",
    )
    flag(parser, "--fix", "fix what can be fixed safely: file modes, leftover files")
    flag(parser, "--offline", "send no requests")
    flag(parser, "--search", "send one test search to the backend of [search], which may cost something")
    flag(parser, "--json", "print JSON lines, one a finding")
    add_config(parser)


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
        module="import_.importing",
        help="convert the configuration of another gateway",
        description="Turn the configuration of another gateway into a commented wireglot.toml. Every setting "
        "of the source is carried over, or listed at the end of the file with the reason and an alternative.",
        epilog=_IMPORT_EXAMPLES,
    )
    programs = parser.add_subparsers(dest="program", metavar="PROGRAM", required=True, help="whose it is")
    for name, (title, file) in _IMPORTED_PROGRAMS.items():
        each = programs.add_parser(name, help=f"{file} of {title}", description=f"Import {file} of {title}.")
        each.add_argument("source", metavar="FILE", help=f"the {file}; - for standard input")
        each.add_argument(
            "-o", "--output", metavar="FILE", default="-", help="the new file (default: standard output)"
        )
        flag(each, "--force", "overwrite an existing file")
        flag(each, "--keep-keys", "keep the source's keys for the gateway, in a file for you alone")


def _add_init(commands: Commands) -> None:
    parser = commands.add_parser(
        "init",
        module="init",
        help="find providers and write a configuration",
        description="Find the keys of providers in the environment and among those kept by `wireglot run`, "
        "and model servers on this machine; ask each one once for its list of models, which costs nothing; "
        "and write a commented wireglot.toml. It holds the names of keys, and never a key.",
    )
    option(
        parser,
        "--output",
        "FILE",
        "where to write it (default: $WIREGLOT_CONFIG, or wireglot.toml here; - for standard output)",
    )
    flag(parser, "--user", "write it where it is found from every folder of yours")
    flag(parser, "--force", "overwrite an existing file")
    flag(parser, "--offline", "send no requests")
    flag(parser, "--json", "print what was found as JSON")


_INSPECT_EXAMPLES: Final = """\
examples:
  wireglot inspect                          a gateway of yours that runs
  wireglot inspect --admin                  to make keys and change everything
  wireglot inspect --url http://gateway:8484
  wireglot inspect report.wgtrace.json      an exported exchange, alone
"""


def _add_inspect(commands: Commands) -> None:
    parser = commands.add_parser(
        "inspect",
        module="inspect",
        help="open the inspector in a browser",
        description="Open the inspector's page in a browser, and print its address: that of a gateway of "
        "yours that runs, by `wireglot serve` or for one client of `wireglot run`, or, for the file of an "
        "exported exchange, a page of its own on this machine alone, until it is interrupted. Where the page "
        "wants a sign-in, the link signs in once, within five minutes.",
        epilog=_INSPECT_EXAMPLES,
    )
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="an exported exchange (`wireglot trace export`)"
    )
    where = parser.add_mutually_exclusive_group()
    add_config(where)
    option(where, "--url", "URL", "the gateway that listens there")
    flag(parser, "--admin", "sign in as administrator of a gateway of yours, also where it wants no sign-in")
    flag(parser, "--no-browser", "only print the address")


_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_LONGEST_SECONDS: Final = 5200 * 7 * 86400
_MAX_AMOUNT: Final = 10**15
"""Of tokens, requests or money: more is a mistake, and no store accepts it."""

_KEYS_EXAMPLES: Final = """\
examples:
  KEY=$(wireglot keys create laptop)
  wireglot keys create team-a --models 'claude-*,fast' --cost-per-month 50
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
    "concurrent": "maximum concurrent requests",
    "tokens_per_day": "tokens a day (UTC)",
    "tokens_per_month": "tokens a month (UTC)",
    "cost_per_day": "money a day, in the currency of the configuration",
    "cost_per_month": "money a month",
    "searches_per_day": "web searches in any day that the gateway runs itself",
}


def _add_keys(commands: Commands) -> None:
    parser = commands.add_parser(
        "keys",
        module="keys",
        help="create and revoke client keys",
        description="Make and revoke keys for clients of the gateway that runs on this machine, or of the "
        "one at --url; if none runs, in the store of the configuration. All of it may be done while the "
        "gateway runs; every process of it knows within seconds.",
        epilog=_KEYS_EXAMPLES,
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
        flag(action, "--yes", "do not ask")
    rotate = actions.add_parser("rotate", help="replace a key by a new one for the same caller")
    _add_key_name(rotate)
    option(
        rotate, "--overlap", "TIME", "how long the old one still works: 30m, 1h, 7d", type=_seconds, default=0
    )
    for action in actions.choices.values():
        flag(action, "--json", "print JSON")
        add_config(action)
        option(
            action,
            "--url",
            "URL",
            "use the admin API of the gateway there; its secret is in WIREGLOT_ADMIN_SECRET",
        )


def _add_key_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="what the caller is called")


def _add_key_limits(parser: argparse.ArgumentParser) -> None:
    option(parser, "--models", "A,B", "names and patterns it may ask for (default: all)", type=_names)
    option(parser, "--group", "NAME", "a group of [groups]: what the key does not set is the group's")
    option(parser, "--owner", "NAME", "the person who uses it, for reports")
    option(parser, "--expires", "TIME|DATE", "30d, 12h, or a date like 2027-01-31", type=_expiry)
    for name, meaning in _KEY_LIMITS.items():
        money = name.startswith("cost_")
        option(
            parser,
            f"--{name.replace('_', '-')}",
            "2.50" if money else "N",
            meaning,
            type=_money if money else _count,
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


_LOGIN_EXAMPLES: Final = """\
examples:
  wireglot login                    where the keys are that there are
  wireglot login kimi               ask for a key, try it, keep it
  pass show kimi | wireglot login kimi --key -
  wireglot logout kimi

A key is kept in a file that only you can read, or in the system's keyring. A
variable of the environment wins over it. Gateways that run take it up at once.
"""


def _add_login(commands: Commands) -> None:
    parser = commands.add_parser(
        "login",
        module="login",
        help="keep a provider's key, after trying it",
        description="Ask for the key of a provider, try it with one request that costs nothing, and keep it "
        "for all commands and gateways of this user. Without PROVIDER: list where keys are, and no key.",
        epilog=_LOGIN_EXAMPLES,
    )
    parser.add_argument("provider", nargs="?", metavar="PROVIDER", help="whose key it is: kimi, openai, ...")
    option(parser, "--key", "-", "read the key from standard input", type=_standard_input)
    flag(parser, "--keyring", "keep it in the system's keyring, which the extra wireglot[keyring] reaches")
    flag(parser, "--unchecked", "keep it without trying it")
    flag(parser, "--json", "without PROVIDER: print JSON")
    add_config(parser)


def _add_logout(commands: Commands) -> None:
    parser = commands.add_parser(
        "logout",
        module="login",
        help="forget a provider's key",
        description="Forget the key of a provider that `wireglot login` or `wireglot run` has kept.",
    )
    parser.add_argument("provider", nargs="?", metavar="PROVIDER", help="whose key it is")
    add_config(parser)


def _standard_input(text: str) -> str:
    if text != "-":
        raise argparse.ArgumentTypeError(
            "expected -, for standard input: a key on the command line is seen by others"
        )
    return text


def _add_models(commands: Commands) -> None:
    parser = commands.add_parser(
        "models",
        module="models",
        help="list the available models",
        description="List the models that a gateway with this configuration and environment serves: context "
        "and output in tokens, what else they take, and their price for a million tokens in and out. Then "
        "the providers that are off, and why.",
    )
    parser.add_argument(
        "pattern", nargs="?", metavar="NAME", default="", help="only those whose name holds this text"
    )
    flag(parser, "--all", "also the models of providers that are off")
    how = parser.add_mutually_exclusive_group()
    flag(how, "--json", "print JSON lines")
    flag(how, "--names", "print names alone, one on each line")
    add_config(parser)


def _add_pairs(commands: Commands) -> None:
    parser = commands.add_parser(
        "pairs",
        module="pairs",
        help="translate a bundled conversation between all dialects and show it",
        description="Translate a bundled coding-agent conversation between all ordered pairs of the four "
        "main dialects, and show one request next to its translation.",
    )
    option(parser, "--from", "DIALECT", "the request shown on the left", dest="source", default="anthropic")
    option(parser, "--to", "DIALECT", "and its translation", dest="target", default="gemini")


_DIALECTS: Final = ("anthropic", "openai-chat", "openai-responses", "gemini", "ollama", "gemini-interactions")


def _add_probe(commands: Commands) -> None:
    parser = commands.add_parser(
        "probe",
        module="probe",
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
    option(parser, "--dialect", "DIALECT", f"one of {', '.join(_DIALECTS)}", choices=_DIALECTS)
    option(parser, "--model", "NAME", "model to test (default: the first that is listed)")
    option(parser, "--key", "KEY", "the key for it; better: --key-env")
    option(parser, "--key-env", "NAME", "the variable that holds the key")
    parser.add_argument(
        "--only",
        metavar="CASES",
        action="append",
        default=[],
        help="these cases: ids, themes or patterns, with commas",
    )
    flag(parser, "--large", "also the cases that send very much")
    option(
        parser,
        "--budget",
        "AMOUNT",
        "end before more could be spent: tokens (200000), or money of a model that is priced (0.50USD)",
    )
    option(
        parser,
        "--timeout",
        "SECONDS",
        "how long an answer may keep silent (default: 120; two and a half times that for all of it)",
        type=positive,
    )
    flag(parser, "--list", "list the cases without sending requests")
    flag(parser, "--dry-run", "print the requests without sending them")
    flag(parser, "--yes", "do not ask for confirmation before calling a host elsewhere")
    flag(parser, "--all", "print the cases that passed, too")
    option(parser, "--json", "FILE", "write the report with all evidence as JSON")
    option(parser, "--html", "FILE", "write it as a page")
    option(parser, "--catalog", "FILE", "write what was learned as a file for the catalog")


_CLIENTS: Final = (
    *("aider", "claude", "cline", "codex", "continue", "copilot", "crush", "droid", "gemini", "goose"),
    *("hermes", "kimi", "llm", "openclaw", "opencode", "pi", "qwen", "vscode", "zed"),
)
_RUN_EXAMPLES: Final = """\
examples:
  wireglot run claude
  wireglot run claude --model kimi/kimi-k3
  wireglot run codex --model demo/demo -- exec "Say hello"
  wireglot run --env openai -- python my_agent.py
  eval "$(wireglot run claude --print-env)"

CLIENT is one of aider, claude, cline, codex, continue, copilot, droid, gemini,
goose, hermes, kimi, llm, openclaw, opencode, pi, qwen; without one, a menu
offers them and models. It keeps its own home, history, login and project
settings: all that differs is in variables and options that end with it. Its
exit status is that of the command. For crush, vscode and zed the settings are
printed.
"""


def _add_run(commands: Commands) -> None:
    parser = commands.add_parser(
        "run",
        module="run.launch",
        help="start a client with a gateway: claude, codex, gemini and others",
        description="Start a client on the gateway that runs on this machine, or else on one of its own, "
        "which ends with it. Without a key of any provider, a demo model answers.",
        epilog=_RUN_EXAMPLES,
    )
    assert isinstance(parser, ArgumentParser)
    parser.takes_rest = True
    parser.usage = "wireglot run [CLIENT] [options] [-- ARGUMENTS OF THE CLIENT]"
    client = parser.add_argument("client", nargs="?", metavar="CLIENT", help="the client to start")
    setattr(client, "completes", _CLIENTS)  # noqa: B010 - for shells; other names are refused with a hint
    option(parser, "--model", "NAME", "PROVIDER/MODEL to ask (default: what the client asks for)")
    parser.add_argument(
        "--env",
        action="append",
        choices=("anthropic", "openai", "gemini"),
        default=[],
        help="set the variables of this vendor's SDKs for the command after --; can be repeated",
    )
    add_config(parser)
    option(parser, "--url", "URL", "use the gateway there; its client key is in WIREGLOT_KEY")
    flag(parser, "--private", "always start a separate gateway")
    option(parser, "--log", "FILE", "append the log of a gateway started by this command")
    flag(parser, "--statusline", "claude: show model, route, cost, context and losses in its status line")
    flag(parser, "--inspect", "open the inspector of its gateway in a browser, signed in")
    flag(parser, "--print-env", "only print the variables, for eval in a shell")


_LAST_PORT: Final = 65535
_TRACE_MINUTES: Final = 15.0
_MAX_TRACE_MINUTES: Final = 24 * 60


def _add_serve(commands: Commands) -> None:
    parser = commands.add_parser(
        "serve",
        module="serve",
        help="run the gateway",
        description="Run the gateway: any client, any provider. Without a configuration, providers whose "
        "keys are in the environment are on; without any key, a demo model that lives in the process.",
    )
    option(parser, "--config", "FILE", "the configuration (default: wireglot.toml, if there)")
    option(parser, "--host", "ADDRESS", "where to listen (default: 127.0.0.1)")
    option(parser, "--port", "N", "and on which port (default: 8484; 0: any)", type=_port)
    option(parser, "--workers", "N", "processes that share the port", type=positive)
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
    option(
        parser,
        "--trace",
        "MINUTES",
        f"record full request and response bodies for MINUTES (default: {_TRACE_MINUTES:g})",
        type=_minutes,
        nargs="?",
        const=_TRACE_MINUTES,
    )


def _minutes(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,5}(\.[0-9]{1,3})?", text) or not 0 < float(text) <= _MAX_TRACE_MINUTES:
        raise argparse.ArgumentTypeError(f"expected minutes, {_MAX_TRACE_MINUTES} at most, got {text[:40]!r}")
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
        module="smoke",
        help="send one test request to every endpoint",
        description="Exercise whole answers, streams, tools, model lists and token counts on every endpoint "
        "of a gateway, and print what passed, how long it took and what was lost. The exit status is the "
        "number of failures.",
    )
    option(
        parser,
        "--url",
        "URL",
        "where a gateway listens (default: start one here, configured as `wireglot serve` would be)",
    )
    option(parser, "--key", "KEY", "a client key, where the gateway asks for one")
    option(parser, "--provider", "NAME", "test the first model listed for this provider")
    option(parser, "--model", "NAME", "test this model (with --provider: of that provider)")


def _add_store(commands: Commands) -> None:
    parser = commands.add_parser(
        "store",
        module="store",
        help="manage stored data",
        description="Look after the store of the gateway that runs here, or else of a configuration. All of "
        "it may be done while the gateway runs.",
    )
    add_config(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, help="what to do with it")
    stats = actions.add_parser("stats", help="what is in it, and how much")
    flag(stats, "--json", "as JSON")
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
        description="Read what `export` wrote, from this store or another. Existing records are kept.",
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
        option(
            action,
            "--url",
            "URL",
            "use the admin API of the gateway there; its secret is in WIREGLOT_ADMIN_SECRET",
        )
    parser.set_defaults(url=None)


_TRACE_EXAMPLES: Final = """\
examples:
  wireglot trace list
  wireglot trace list 'client:codex status:>=400 since:2h'
  wireglot trace list --follow
  wireglot trace show last
  wireglot trace diff ID                       both requests, part by part
  wireglot trace diff ID OTHER                 two answers
  wireglot trace export ID -o report.wgtrace.json
  wireglot trace replay report.wgtrace.json --offline
  wireglot trace replay ID --to kimi/kimi-k3
  wireglot trace replay ID --raw                what went upstream, once more

An ID may be the file of an exported trace, or `last`: the newest that was
recorded. Bodies are recorded as [trace] in the configuration says, or for some
minutes by `wireglot serve --trace`.
"""

_FILTER_EXAMPLES: Final = """\
filters, of which all must hold (quote them: shells read < and > themselves):
  client:codex model:~gemini        exactly this; with ~: a part of it
  status:>=400 cost:>0.1 total:>5s  also tokens, input, output, cached, first
  loss:serious loss:cache_marker    a grade or a feature
  since:2h until:2027-01-31         a time ago, or a date or time (UTC)
  provider:kimi,gemini -is:stream   any of these; not this
  some words                        in the row or its recorded bodies
"""


def _add_trace(commands: Commands) -> None:
    parser = commands.add_parser(
        "trace",
        module="trace",
        help="show recorded exchanges",
        description="Look at recorded exchanges: what the client asked, what went upstream, what came back, "
        "what the client got, and what was lost between them. They are read from the gateway that "
        "runs on this machine or the one at --url; if none runs, from the store of the configuration; or "
        "from a file.",
        epilog=_TRACE_EXAMPLES,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, help="what to do")
    listed = actions.add_parser("list", help="the latest exchanges", epilog=_FILTER_EXAMPLES)
    listed.add_argument(
        "filter", nargs="*", metavar="FILTER", help="only exchanges for which all of these hold: see below"
    )
    _add_gateway(listed)
    option(listed, "--limit", "NUMBER", "maximum number of rows (default: 20)", type=positive, default=20)
    for name, about in (
        ("model", "only this model, as it was asked for or as the provider names it"),
        ("provider", "only this provider"),
        ("client", "only this program (claude-code, codex)"),
        ("status", "only this status: 200, 4xx, running, failed, left"),
        ("loss", "only with such a loss: a grade (serious) or a feature (cache_marker)"),
        ("session", "only this conversation"),
        ("key", "only the client key of this name"),
        ("purpose", "only this purpose: main, subagent, auxiliary, background, compaction"),
        ("agent", "only the sub-agent of this name or id"),
        ("dialect", "only this dialect of the client"),
        ("since", "only since then: 15m, 2h, 7d, or a date or time"),
        ("until", "only until then"),
    ):
        option(listed, f"--{name}", name.upper(), about)
    option(listed, "--search", "TEXT", "only what has this text, in its row or its bodies")
    flag(listed, "--follow", "go on: show exchanges as they end, until Ctrl-C")
    flag(listed, "--json", "as JSON; with --follow a line for each exchange")
    show = actions.add_parser("show", help="one exchange: all four bodies, losses, times")
    _add_exchange(show)
    flag(show, "--full", "unfold everything, and each event of streams")
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
    flag(diff, "--full", "with the values of both sides")
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
    flag(export, "--gzip", "packed")
    replay = actions.add_parser(
        "replay",
        help="translate it again and compare; or send it again",
        description="With --offline: translate both ways again and compare with what was recorded; nothing "
        "is sent. Without: have the gateway send the request again, after saying who pays and what it may "
        "cost.",
    )
    _add_exchange(replay)
    flag(replay, "--offline", "send nothing")
    option(replay, "--to", "PROVIDER/MODEL", "send it there instead")
    flag(replay, "--raw", "send what went upstream, in the dialect it went in: nothing is translated")
    flag(replay, "--yes", "do not ask before it is sent")


def _add_exchange(parser: argparse.ArgumentParser, *, json: bool = True) -> None:
    parser.add_argument("id", metavar="ID", help="the exchange, `last`, or the file of an exported one")
    _add_gateway(parser)
    if json:
        flag(parser, "--json", "as JSON")


def _add_gateway(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    add_config(where)
    option(
        where,
        "--url",
        "URL",
        "ask the gateway that listens there; its admin secret, or a client key for its own exchanges, "
        "is read from $WIREGLOT_ADMIN_SECRET or $WIREGLOT_KEY",
    )


_TRANSLATE_DESCRIPTION: Final = """\
Translate one document from standard input to standard output, or, with --jsonl, a whole file of them.

What could not be carried over (the losses) is printed on standard error, or written to --losses FILE as JSON.
"""

_TRANSLATE_EXAMPLES: Final = """\
examples:
  wireglot translate request --from anthropic --to gemini < in.json > out.json
  wireglot translate response --from gemini --to anthropic < in.json > out.json
  wireglot translate stream   --from gemini --to anthropic < in.sse > out.sse
  wireglot translate --jsonl --jobs 4 < cases.jsonl > results.jsonl

exit status:
  0  translated (with --jsonl: every line)
  1  the stream broke off or reported an error (--jsonl: of any line)
  2  bad input or an unusable command line; one line on standard error says
     where and what was expected
"""


def _add_translate(commands: Commands) -> None:
    parser = commands.add_parser(
        "translate",
        module="translate",
        help="translate a request, a response, a stream, or a file of them",
        description=_TRANSLATE_DESCRIPTION,
        epilog=_TRANSLATE_EXAMPLES,
    )
    parser.add_argument(
        "kind",
        nargs="?",
        choices=("request", "response", "stream"),
        help="what the one document is (not with --jsonl)",
    )
    option(parser, "--from", "DIALECT", "the dialect the input is written in", dest="source")
    option(parser, "--to", "DIALECT", "the dialect to write", dest="target")
    option(parser, "--model", "NAME", "the model the request is for; it replaces the one in the body")
    option(parser, "--provider", "NAME", "the provider whose limits apply (see `wireglot providers`)")
    flag(parser, "--strict", "a loss is an error: all or nothing")
    option(parser, "--in", "FILE", "read this file instead of standard input", dest="input")
    option(parser, "--out", "FILE", "write this file instead of standard output", dest="output")

    single = parser.add_argument_group("one document")
    option(
        single,
        "--request",
        "FILE",
        "the client's original request, in the dialect of --to (response and stream only)",
    )
    option(single, "--status", "CODE", "the HTTP status the response came with (response only)", type=_status)
    single.add_argument(
        "--framing",
        choices=("sse", "json-array"),
        help="how to write a Gemini stream (stream only; default: sse)",
    )
    option(single, "--losses", "FILE", "write the losses there as a JSON array instead of telling them")
    flag(single, "--pretty", "indent the JSON written")

    lines = parser.add_argument_group("many documents")
    flag(
        lines,
        "--jsonl",
        "read one case a line and write one result a line; --from, --to, --model and --provider apply to "
        "lines without their own",
    )
    option(
        lines, "--jobs", "N", "work in N processes; the order stays (default: 1)", type=positive, default=1
    )
    lines.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show progress on standard error (default: if it is a terminal)",
    )


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


def _add_statusline(commands: Commands) -> None:
    parser = commands.add_parser(
        "statusline",
        module="statusline",
        help="print a status line for Claude Code",
        description="Print model, route, cost of the session, context used and serious losses of the last "
        "answer, from the document that Claude Code gives on the standard input and from the gateway of "
        "ANTHROPIC_BASE_URL. `wireglot run claude --statusline` sets it for one run.",
    )
    option(parser, "--url", "URL", "the gateway (default: ANTHROPIC_BASE_URL)")


def _add_usage(commands: Commands) -> None:
    parser = commands.add_parser(
        "usage",
        module="usage",
        help="report usage and cost",
        description="Report what was used, and what it cost: from the gateway that runs on this machine or "
        "the one at --url; if none runs, from the store of the configuration.",
        epilog=_USAGE_EXAMPLES,
    )
    where = parser.add_mutually_exclusive_group()
    add_config(where)
    option(where, "--url", "URL", "ask the gateway that listens there")
    option(parser, "--api-key", "KEY", "with --url: the client key whose usage is meant (or $WIREGLOT_KEY)")
    flag(
        parser,
        "--admin",
        "with --url: the usage of all callers; the admin secret is read from $WIREGLOT_ADMIN_SECRET",
    )
    option(
        parser,
        "--by",
        "NAMES",
        "what to add up by: key, group, model, provider, day, session, outcome, operation, purpose, "
        "agent, client (default: day,model)",
        default="day,model",
    )
    option(
        parser,
        "--since",
        "TIME",
        "from when on: 12h, 7d, 4w ago, YYYY-MM-DD or unix seconds (default: 30d)",
        default="30d",
    )
    option(parser, "--until", "TIME", "and until when; a day is meant to its end")
    option(parser, "--key", "NAME", "only the client key of this name")
    option(parser, "--group", "NAME", "only the keys of this group")
    option(parser, "--model", "NAME", "only this model (as the provider names it)")
    option(parser, "--provider", "NAME", "only this provider")
    option(parser, "--client", "NAME", "only this client program, such as claude-code")
    option(parser, "--agent", "NAME", "only this sub-agent")
    flag(parser, "--json", "as JSON")
    parser.add_argument(
        "--chart",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show a bar for each day (default: on a terminal)",
    )


def _add_listings(commands: Commands) -> None:
    for name, help, description in (
        ("dialects", "list the dialects", "List the dialects that --from and --to take."),
        ("providers", "list the providers", "List the providers that --provider takes."),
        (
            "losses",
            "list the names of losses",
            "List every feature name that a loss can carry, and what it means.",
        ),
    ):
        commands.add_parser(name, module="listing", help=help, description=description)


_COMMANDS: Final[dict[str, Callable[[Commands], None]]] = {
    "init": _add_init,
    "login": _add_login,
    "logout": _add_logout,
    "run": _add_run,
    "serve": _add_serve,
    "models": _add_models,
    "doctor": _add_doctor,
    "config": _add_config,
    "import": _add_import,
    "translate": _add_translate,
    "demo": _add_demo,
    "pairs": _add_pairs,
    "smoke": _add_smoke,
    "probe": _add_probe,
    "inspect": _add_inspect,
    "trace": _add_trace,
    "usage": _add_usage,
    "statusline": _add_statusline,
    "store": _add_store,
    "keys": _add_keys,
    **dict.fromkeys(("dialects", "providers", "losses"), _add_listings),
    "completion": _add_completion,
}
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


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """Parsed arguments contain the name of the `command`, if there was one, then the function to `run`, and
    this parser as the `root`.

    `command`: if given, the parser knows no other: creating all of them takes longer than most commands.
    `completion` needs all.
    """
    parser = ArgumentParser(
        prog="wireglot",
        description="Translate between LLM API dialects and report what could not be carried over.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "--version", action=_Version, default=argparse.SUPPRESS, help="show the version and exit"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=ArgumentParser)
    only = _COMMANDS.get(command) if command != "completion" else None
    for add in (only,) if only is not None else dict.fromkeys(_COMMANDS.values()):
        add(commands)
    parser.set_defaults(root=parser)
    return parser
