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
from wireglot.cli.argument_parser import (
    Actions,
    ArgumentParser,
    Commands,
    add_config,
    flag,
    option,
    positive,
    shown,
)

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
        "that commands find in the current folder and that `wireglot init` did not write; it decides where "
        "your keys and prompts are sent. If its content changes, it must be approved again.",
    )
    parser.add_argument("action", choices=("check", "trust"), help="the action")
    flag(parser, "--json", "check: print JSON")
    option(parser, "--config", "FILE", "same as PATH (the spelling of `wireglot serve`)")
    parser.add_argument(
        "path", nargs="?", metavar="PATH", help="the file (default: the one `wireglot serve` would find)"
    )


def _add_demo(commands: Commands) -> None:
    commands.add_parser(
        "demo",
        module="demo",
        help="start a gateway and send it a request in every dialect",
        description="Start a gateway on a free port with a built-in demo model, send it HTTP requests in "
        "every dialect, stream a tool call, and show the requests and answers.",
    )


def _add_doctor(commands: Commands) -> None:
    parser = commands.add_parser(
        "doctor",
        module="doctor.examination",
        help="diagnose problems and suggest fixes",
        description="Check the configuration, keys, network access to each provider, the clock, the store, "
        "the port, versions, prices, unsafe settings and the clients on this machine, and suggest a fix for "
        "each problem. One request is sent to each provider; it uses no tokens. The exit status is 1 if "
        "there are problems.",
    )
    flag(parser, "--fix", "fix what can be fixed safely: file modes, leftover files")
    flag(parser, "--offline", "send no requests")
    flag(parser, "--search", "send one test search to the [search] backend, which may cost money")
    flag(parser, "--json", "print JSON lines, one per finding")
    add_config(parser)


_IMPORT_EXAMPLES: Final = """\
examples:
  wireglot import litellm config.yaml -o wireglot.toml
  wireglot import ccr ~/.claude-code-router/config.json -o wireglot.toml
  wireglot import litellm - < config.yaml | less

No key is written into the new file. A key in clear text is replaced by
env:NAME, a variable to set; --keep-keys stores the key where `wireglot login`
stores keys.
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
        description="Convert the configuration of another gateway to a commented wireglot.toml. Every "
        "setting of the source is carried over, or listed at the end of the file with the reason and an "
        "alternative.",
        epilog=_IMPORT_EXAMPLES,
    )
    programs = parser.add_subparsers(dest="program", metavar="PROGRAM", required=True, help="source program")
    for name, (title, file) in _IMPORTED_PROGRAMS.items():
        each = programs.add_parser(name, help=f"{file} of {title}", description=f"Import {file} of {title}.")
        each.add_argument("source", metavar="FILE", help=f"the {file}; -: standard input")
        each.add_argument(
            "-o", "--output", metavar="FILE", default="-", help="output file (default: standard output)"
        )
        flag(each, "--force", "overwrite an existing file")
        flag(each, "--keep-keys", "store the source's keys for the gateway, in a file only you can read")


def _add_init(commands: Commands) -> None:
    parser = commands.add_parser(
        "init",
        module="init",
        help="find providers and write a configuration",
        description="Find provider keys in the environment and among those stored by `wireglot run`, and "
        "model servers on this machine; send each of them one request, which costs nothing, to check it and "
        "list its models; and write a commented wireglot.toml. It contains the names of keys, never a key.",
    )
    option(
        parser,
        "--output",
        "FILE",
        "output file (default: $WIREGLOT_CONFIG, or wireglot.toml in the current folder; -: standard output)",
    )
    flag(parser, "--user", "write the user configuration, which is found from every folder")
    flag(parser, "--force", "overwrite an existing file")
    flag(parser, "--offline", "send no requests")
    flag(parser, "--json", "print what was found as JSON")


_INSPECT_EXAMPLES: Final = """\
examples:
  wireglot inspect                          your running gateway
  wireglot inspect --admin                  to create keys and change settings
  wireglot inspect --url http://gateway:8484
  wireglot inspect report.wgtrace.json      an exported exchange
"""


def _add_inspect(commands: Commands) -> None:
    parser = commands.add_parser(
        "inspect",
        module="inspect",
        help="open the inspector in a browser",
        description="Open the inspector of your running gateway in a browser and print its URL. The gateway "
        "is one started by `wireglot serve`, or by `wireglot run` for one client. With FILE, an exported "
        "exchange, open a page that serves it to this machine only, until interrupted. If the page requires "
        "a sign-in, the link signs in once, within five minutes.",
        epilog=_INSPECT_EXAMPLES,
    )
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="an exported exchange (`wireglot trace export`)"
    )
    where = parser.add_mutually_exclusive_group()
    add_config(where)
    option(where, "--url", "URL", "use the gateway at URL")
    flag(parser, "--admin", "sign in as administrator of your gateway, even if it requires no sign-in")
    flag(parser, "--no-browser", "only print the URL")


_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_LONGEST_SECONDS: Final = 5200 * 7 * 86400
_MAX_AMOUNT: Final = 10**15
"""The largest amount of tokens, requests or money in an option: more is a mistake, and no store accepts
it."""

_KEYS_EXAMPLES: Final = """\
examples:
  KEY=$(wireglot keys create laptop)
  wireglot keys create team-a --models 'claude-*,fast' --cost-per-month 50
  wireglot keys update team-a --concurrent 5 --cost-per-month 0
  wireglot keys rotate team-a --overlap 1h
  wireglot keys list
  wireglot keys delete team-a
  wireglot keys off

Only the new key is written to standard output. It is shown once: only its hash
is stored.
"""

_KEY_LIMITS: Final = {
    "requests_per_minute": "maximum requests in any minute",
    "tokens_per_minute": "maximum tokens in any minute, input plus output",
    "concurrent": "maximum concurrent requests",
    "tokens_per_day": "maximum tokens per day (UTC)",
    "tokens_per_month": "maximum tokens per month (UTC)",
    "cost_per_day": "maximum cost per day, in the currency of the configuration",
    "cost_per_month": "maximum cost per month",
    "searches_per_day": "maximum web searches run by the gateway in any day",
}


def _add_keys(commands: Commands) -> None:
    parser = commands.add_parser(
        "keys",
        module="keys",
        help="create and revoke client keys",
        description="Create and revoke client keys of the gateway that runs on this machine, or of the one "
        "at --url; if none runs, in the store of the configuration. Keys can be changed while the gateway "
        "runs; all of its processes apply the change within seconds.",
        epilog=_KEYS_EXAMPLES,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, help="the action")
    create = actions.add_parser("create", help="create a key and print it once")
    _add_key_name(create)
    _add_key_limits(create)
    update = actions.add_parser("update", help="change the limits of a key; 0 removes a limit")
    _add_key_name(update)
    _add_key_limits(update)
    actions.add_parser("list", help="list all keys and their limits")
    _add_key_name(actions.add_parser("revoke", help="revoke a key"))
    delete = actions.add_parser("delete", help="delete a key and everything its caller stored")
    _add_key_name(delete)
    off = actions.add_parser("off", help="delete all stored keys: the gateway no longer requires one")
    for action in (delete, off):
        flag(action, "--yes", "do not ask for confirmation")
    rotate = actions.add_parser("rotate", help="replace a key with a new one for the same caller")
    _add_key_name(rotate)
    option(
        rotate, "--overlap", "TIME", "how long the old key still works: 30m, 1h, 7d", type=_seconds, default=0
    )
    for action in actions.choices.values():
        flag(action, "--json", "print JSON")
        add_config(action)
        option(
            action,
            "--url",
            "URL",
            "use the admin API of the gateway at URL; its secret is read from $WIREGLOT_ADMIN_SECRET",
        )


def _add_key_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the caller")


def _add_key_limits(parser: argparse.ArgumentParser) -> None:
    option(parser, "--models", "A,B", "allowed model names and patterns (default: all)", type=_names)
    option(parser, "--group", "NAME", "a group of [groups]: settings that the key lacks come from the group")
    option(parser, "--owner", "NAME", "the person who uses the key, for reports")
    option(
        parser,
        "--expires",
        "TIME|DATE",
        "when the key expires: 30d, 12h, or a date like 2027-01-31",
        type=_expiry,
    )
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
        raise argparse.ArgumentTypeError(f"expected an integer up to {_MAX_AMOUNT}, got {text[:40]!r}")
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
  wireglot login                    list where keys are found
  wireglot login kimi               prompt for a key, test it, store it
  pass show kimi | wireglot login kimi --key -
  wireglot logout kimi

A key is stored in a file that only you can read, or in the system keyring. An
environment variable takes precedence. Running gateways load the key within
seconds.
"""


def _add_login(commands: Commands) -> None:
    parser = commands.add_parser(
        "login",
        module="login",
        help="store a provider API key after testing it",
        description="Prompt for the API key of a provider, test it with one request that costs nothing, and "
        "store it for all commands and gateways of this user. Without PROVIDER: list where keys are found, "
        "without showing them.",
        epilog=_LOGIN_EXAMPLES,
    )
    parser.add_argument("provider", nargs="?", metavar="PROVIDER", help="the provider: kimi, openai, ...")
    option(parser, "--key", "-", "read the key from standard input", type=_standard_input)
    flag(parser, "--keyring", "store it in the system keyring (requires the extra wireglot[keyring])")
    flag(parser, "--unchecked", "store it without testing it")
    flag(parser, "--json", "without PROVIDER: print JSON")
    add_config(parser)


def _add_logout(commands: Commands) -> None:
    parser = commands.add_parser(
        "logout",
        module="login",
        help="delete a stored provider API key",
        description="Delete a provider's API key that `wireglot login` or `wireglot run` has stored.",
    )
    parser.add_argument("provider", nargs="?", metavar="PROVIDER", help="the provider")
    add_config(parser)


def _standard_input(text: str) -> str:
    if text != "-":
        raise argparse.ArgumentTypeError(
            "expected -, for standard input: other users can see a key on the command line"
        )
    return text


def _add_models(commands: Commands) -> None:
    parser = commands.add_parser(
        "models",
        module="models",
        help="list the available models",
        description="List the models that a gateway with this configuration and environment serves: context "
        "and output in tokens, input types other than text, and the price of a million input and output "
        "tokens. Then list the providers that are off, and why.",
    )
    parser.add_argument(
        "pattern", nargs="?", metavar="NAME", default="", help="only models whose name contains this text"
    )
    flag(parser, "--all", "also list the models of providers that are off")
    how = parser.add_mutually_exclusive_group()
    flag(how, "--json", "print JSON lines")
    flag(how, "--names", "print only names, one per line")
    add_config(parser)


def _add_pairs(commands: Commands) -> None:
    parser = commands.add_parser(
        "pairs",
        module="pairs",
        help="translate a bundled conversation between all dialects and show it",
        description="Translate a bundled coding-agent conversation between all ordered pairs of the four "
        "main dialects, and show one request next to its translation.",
    )
    option(
        parser,
        "--from",
        "DIALECT",
        "dialect of the request, shown on the left",
        dest="source",
        default="anthropic",
    )
    option(
        parser,
        "--to",
        "DIALECT",
        "dialect of its translation, shown on the right",
        dest="target",
        default="gemini",
    )


_DIALECTS: Final = ("anthropic", "openai-chat", "openai-responses", "gemini", "ollama", "gemini-interactions")


def _add_probe(commands: Commands) -> None:
    parser = commands.add_parser(
        "probe",
        module="probe",
        help="test an endpoint that claims to speak a dialect",
        description="Test a provider, another gateway or this one with a published list of cases: streams, "
        "tool calls, ids, stop reasons, usage, reasoning over several turns, errors, schemas, fields. The "
        "maximum cost is printed before anything is sent. The exit status is 1 if a required case failed.",
    )
    parser.add_argument(
        "base_url",
        metavar="BASE_URL",
        nargs="?",
        default="",
        help="base URL, as configured in a client: http://127.0.0.1:8484",
    )
    option(parser, "--dialect", "DIALECT", f"one of {', '.join(_DIALECTS)}", choices=_DIALECTS)
    option(parser, "--model", "NAME", "model to test (default: the first one listed)")
    option(parser, "--key", "KEY", "API key of the endpoint; prefer --key-env")
    option(parser, "--key-env", "NAME", "environment variable that contains the API key")
    parser.add_argument(
        "--only",
        metavar="CASES",
        action="append",
        default=[],
        help="run only these cases: ids, themes or patterns, separated by commas",
    )
    flag(parser, "--large", "also run the cases that send very large requests")
    option(
        parser,
        "--budget",
        "AMOUNT",
        "stop before more than AMOUNT could be spent: tokens (200000), or money for a priced model (0.50USD)",
    )
    option(
        parser,
        "--timeout",
        "SECONDS",
        "maximum silence within an answer (default: 120); the whole answer may take 2.5 times as long",
        type=positive,
    )
    flag(parser, "--list", "list the cases without sending requests")
    flag(parser, "--dry-run", "print the requests without sending them")
    flag(parser, "--yes", "do not ask for confirmation before calling a remote host")
    flag(parser, "--all", "also print the cases that passed")
    option(parser, "--json", "FILE", "write the report with all evidence as JSON")
    option(parser, "--html", "FILE", "write the report as an HTML page")
    option(parser, "--catalog", "FILE", "write the findings as a catalog file")


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
lists clients and models. The client keeps its own home, history, login and
project settings: Wireglot only sets environment variables and options for this
run. The exit status is that of the client. For crush, vscode and zed the
settings are printed.
"""


def _add_run(commands: Commands) -> None:
    parser = commands.add_parser(
        "run",
        module="run.launch",
        help="start a client with a gateway: claude, codex, gemini and others",
        description="Start a client with the gateway that runs on this machine, or else with a private one "
        "that stops when the client exits. Without a provider API key, a built-in demo model answers.",
        epilog=_RUN_EXAMPLES,
    )
    assert isinstance(parser, ArgumentParser)
    parser.takes_rest = True
    parser.usage = "wireglot run [CLIENT] [options] [-- ARGUMENTS OF THE CLIENT]"
    client = parser.add_argument("client", nargs="?", metavar="CLIENT", help="the client to start")
    setattr(client, "completes", _CLIENTS)  # noqa: B010 - for shells; other names are refused with a hint
    option(parser, "--model", "NAME", "PROVIDER/MODEL to use (default: the model the client requests)")
    parser.add_argument(
        "--env",
        action="append",
        choices=("anthropic", "openai", "gemini"),
        default=[],
        help="set the variables of this vendor's SDKs for the command after --; can be repeated",
    )
    add_config(parser)
    option(parser, "--url", "URL", "use the gateway at URL; its client key is read from $WIREGLOT_KEY")
    flag(parser, "--private", "always start a separate gateway")
    option(parser, "--log", "FILE", "append the log of the gateway started by this command to FILE")
    flag(parser, "--statusline", "claude: show model, route, cost, context and losses in its status line")
    flag(parser, "--inspect", "open the gateway's inspector in a browser, signed in")
    flag(parser, "--print-env", "only print the variables, for eval in a shell")


_LAST_PORT: Final = 65535
_TRACE_MINUTES: Final = 15.0
# Minutes of recording that the command line asks for: a day.
_MAX_TRACE_MINUTES: Final = 24 * 60


def _add_serve(commands: Commands) -> None:
    parser = commands.add_parser(
        "serve",
        module="serve",
        help="run the gateway",
        description="Run the gateway: any client, any provider. Without a configuration, providers whose "
        "keys are in the environment are on; without any key, a built-in demo model.",
    )
    option(parser, "--config", "FILE", "the configuration (default: wireglot.toml, if there)")
    option(parser, "--host", "ADDRESS", "address to listen on (default: 127.0.0.1)")
    option(parser, "--port", "N", "port to listen on (default: 8484; 0: any free port)", type=_port)
    option(parser, "--workers", "N", "number of processes that share the port", type=positive)
    parser.add_argument(
        "--log", choices=("auto", "json", "pretty", "off"), help="how to log requests (default: auto)"
    )
    parser.add_argument(
        "--model",
        type=_rule,
        action="append",
        default=[],
        metavar="NAME=PROVIDER/MODEL",
        help="send a model name or pattern to a provider's model; applies before [models]; can be repeated",
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
        raise argparse.ArgumentTypeError(
            f"expected a number of minutes, at most {_MAX_TRACE_MINUTES}, got {text[:40]!r}"
        )
    return float(text)


def _port(text: str) -> int:
    if not re.fullmatch("[0-9]{1,5}", text) or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to {_LAST_PORT}, got {text[:40]!r}")
    return int(text)


def _rule(text: str) -> str:
    name, equals, targets = text.partition("=")
    if not equals or not name.strip() or not targets.strip() or ";" in text:
        raise argparse.ArgumentTypeError(f"expected NAME=PROVIDER/MODEL, got {shown(text)}")
    return text


def _add_smoke(commands: Commands) -> None:
    parser = commands.add_parser(
        "smoke",
        module="smoke",
        help="send one test request to every endpoint",
        description="Test complete answers, streams, tools, model lists and token counts on every endpoint "
        "of a gateway, and print what passed, how long it took and what was lost. The exit status is the "
        "number of failures.",
    )
    option(
        parser,
        "--url",
        "URL",
        "URL of the gateway (default: start one with the configuration `wireglot serve` would use)",
    )
    option(parser, "--key", "KEY", "a client key, if the gateway requires one")
    option(parser, "--provider", "NAME", "test the first model listed for this provider")
    option(parser, "--model", "NAME", "test this model (with --provider: of that provider)")
    flag(parser, "--json", "print JSON lines, one per check")


def _add_store(commands: Commands) -> None:
    parser = commands.add_parser(
        "store",
        module="store",
        help="manage stored data",
        description="Manage the store of the gateway that runs on this machine, or else of a configuration. "
        "All actions are possible while the gateway runs.",
    )
    add_config(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, help="the action")
    stats = actions.add_parser("stats", help="show what is stored, and how much")
    flag(stats, "--json", "print JSON")
    actions.add_parser(
        "prune",
        help="delete expired and over-limit data now",
        description="Delete expired data and data over the limits of [store.keep]. The gateway "
        "does the same every few minutes.",
    )
    export = actions.add_parser(
        "export",
        help="write everything to a file",
        description="Write everything as JSON lines. Conversation content stays encrypted: only a gateway "
        "with the same secret can read it.",
    )
    export.add_argument("file", nargs="?", metavar="FILE", help="output file (default: standard output)")
    load = actions.add_parser(
        "import",
        help="read what `export` wrote",
        description="Read what `export` wrote, from this store or another. Existing records are kept.",
    )
    load.add_argument("file", nargs="?", metavar="FILE", help="input file (default: standard input)")
    wipe = actions.add_parser(
        "wipe",
        help="remove all data of one caller",
        description="Remove every stored response, conversation and reasoning value of one caller. Its usage "
        "records are kept, without the names of its sessions.",
    )
    wipe.add_argument(
        "caller", metavar="CALLER", help='the name of its client key ("local" if there are no keys)'
    )
    for action in (stats, wipe):
        option(
            action,
            "--url",
            "URL",
            "use the admin API of the gateway at URL; its secret is read from $WIREGLOT_ADMIN_SECRET",
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
  wireglot trace replay ID --raw                send the upstream request again

Instead of an ID, give the file of an exported trace, or `last` for the newest
recorded exchange. Bodies are recorded as configured in [trace], or for some
minutes by `wireglot serve --trace`.
"""

_FILTER_EXAMPLES: Final = """\
filters, all of which must match (quote them: shells interpret < and >):
  client:codex model:~gemini        exact match; with ~: substring
  status:>=400 cost:>0.1 total:>5s  also tokens, input, output, cached, first
  loss:serious loss:cache_marker    a grade or a feature
  since:2h until:2027-01-31         a time ago, or a date or time (UTC)
  provider:kimi,gemini -is:stream   any of these; not this
  some words                        text in the row or its recorded bodies
"""


def _add_trace(commands: Commands) -> None:
    parser = commands.add_parser(
        "trace",
        module="trace",
        help="show recorded exchanges",
        description="Show recorded exchanges: the client's request, the upstream request, the upstream "
        "answer, the client's answer, and what was lost between them. They are read from the gateway that "
        "runs on this machine or the one at --url; if none runs, from the store of the configuration; or "
        "from a file.",
        epilog=_TRACE_EXAMPLES,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, help="the action")
    _add_trace_list(actions)
    show = actions.add_parser("show", help="show one exchange: all four bodies, losses, times")
    _add_exchange(show)
    flag(show, "--full", "show everything in full, and each stream event")
    _add_trace_diff(actions)
    _add_trace_export(actions)
    _add_trace_replay(actions)


def _add_trace_list(actions: Actions) -> None:
    listed = actions.add_parser("list", help="list the latest exchanges", epilog=_FILTER_EXAMPLES)
    listed.add_argument(
        "filter",
        nargs="*",
        metavar="FILTER",
        help="only exchanges that match all of these filters: see below",
    )
    _add_gateway(listed)
    option(listed, "--limit", "NUMBER", "maximum number of rows (default: 20)", type=positive, default=20)
    for name, about in (
        ("model", "only this model, as the client requested it or as the provider names it"),
        ("provider", "only this provider"),
        ("client", "only this program (claude-code, codex)"),
        ("status", "only this status: 200, 4xx, running, failed, left"),
        ("loss", "only exchanges with this loss: a grade (serious) or a feature (cache_marker)"),
        ("session", "only this conversation"),
        ("key", "only the client key of this name"),
        ("purpose", "only this purpose: main, subagent, auxiliary, background, compaction"),
        ("agent", "only the sub-agent of this name or id"),
        ("dialect", "only this dialect of the client"),
        ("since", "only since this time: 15m, 2h, 7d ago, or a date or time"),
        ("until", "only until this time"),
    ):
        option(listed, f"--{name}", name.upper(), about)
    option(listed, "--search", "TEXT", "only exchanges with this text in the row or the bodies")
    flag(listed, "--follow", "keep running: show exchanges as they end, until Ctrl-C")
    flag(listed, "--json", "print JSON; with --follow, one line per exchange")


def _add_trace_diff(actions: Actions) -> None:
    diff = actions.add_parser(
        "diff",
        help="compare both requests of an exchange, part by part; or two answers",
        description="Compare both requests of an exchange, part by part: kept (=), rewritten (~), lost (-), "
        "added (+). With another ID: compare the two answers.",
    )
    _add_exchange(diff)
    diff.add_argument(
        "other", nargs="?", metavar="OTHER", help="another ID, or file, to compare answers with"
    )
    flag(diff, "--full", "show the values of both sides")


def _add_trace_export(actions: Actions) -> None:
    export = actions.add_parser(
        "export",
        help="write an exchange to one file, for a report or a test",
        description="Write an exchange to one file that can be attached to a report, shown by `trace show`, "
        "and replayed by a test (wireglot.testing.replay). It contains no keys, but the whole conversation.",
    )
    _add_exchange(export, json=False)
    export.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="output file (default: standard output, unless it is a terminal; -: standard output always)",
    )
    flag(export, "--gzip", "compress with gzip")


def _add_trace_replay(actions: Actions) -> None:
    replay = actions.add_parser(
        "replay",
        help="translate an exchange again and compare; or send it again",
        description="With --offline: translate both ways again and compare with the recording; nothing is "
        "sent. Without: have the gateway send the request again, after showing which key pays and the "
        "maximum cost.",
    )
    _add_exchange(replay)
    flag(replay, "--offline", "send nothing")
    option(replay, "--to", "PROVIDER/MODEL", "send it to this model instead")
    flag(replay, "--raw", "send the recorded upstream request in its own dialect, without translation")
    flag(replay, "--yes", "do not ask for confirmation before sending")


def _add_exchange(parser: argparse.ArgumentParser, *, json: bool = True) -> None:
    parser.add_argument(
        "id", metavar="ID", help="ID of the exchange, `last`, or the file of an exported exchange"
    )
    _add_gateway(parser)
    if json:
        flag(parser, "--json", "print JSON")


def _add_gateway(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    add_config(where)
    option(
        where,
        "--url",
        "URL",
        "use the gateway at URL; its admin secret, or a client key that sees its own exchanges, is read "
        "from $WIREGLOT_ADMIN_SECRET or $WIREGLOT_KEY",
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
        help="kind of the document (not with --jsonl)",
    )
    option(parser, "--from", "DIALECT", "the dialect the input is written in", dest="source")
    option(parser, "--to", "DIALECT", "the dialect to write", dest="target")
    option(parser, "--model", "NAME", "the model the request is for; it replaces the one in the body")
    option(parser, "--provider", "NAME", "the provider whose limits apply (see `wireglot providers`)")
    flag(parser, "--strict", "treat any loss as an error, without output")
    option(parser, "--in", "FILE", "read this file instead of standard input", dest="input")
    option(parser, "--out", "FILE", "write this file instead of standard output", dest="output")

    single = parser.add_argument_group("one document")
    option(
        single,
        "--request",
        "FILE",
        "the client's original request, in the dialect of --to (response and stream only)",
    )
    option(single, "--status", "CODE", "HTTP status of the response (response only)", type=_status)
    single.add_argument(
        "--framing",
        choices=("sse", "json-array"),
        help="how to write a Gemini stream (stream only; default: sse)",
    )
    option(single, "--losses", "FILE", "write the losses to FILE as a JSON array instead of printing them")
    flag(single, "--pretty", "indent the JSON written")

    lines = parser.add_argument_group("many documents")
    flag(
        lines,
        "--jsonl",
        "read one case per line and write one result per line; --from, --to, --model and --provider are "
        "defaults for lines without them",
    )
    option(
        lines,
        "--jobs",
        "N",
        "work in N processes; output order is kept (default: 1)",
        type=positive,
        default=1,
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
  wireglot usage --by day --chart             one bar per day
  wireglot usage --url http://gateway:8484 --admin --by provider --json
"""


def _add_statusline(commands: Commands) -> None:
    parser = commands.add_parser(
        "statusline",
        module="statusline",
        help="print a status line for Claude Code",
        description="Print model, route, cost of the session, context used and serious losses of the last "
        "answer, from the JSON document that Claude Code writes to standard input and from the gateway at "
        "ANTHROPIC_BASE_URL. `wireglot run claude --statusline` enables it for one run.",
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
    option(where, "--url", "URL", "use the gateway at URL")
    option(parser, "--api-key", "KEY", "with --url: the client key whose usage to report (or $WIREGLOT_KEY)")
    flag(
        parser,
        "--admin",
        "with --url: the usage of all callers; the admin secret is read from $WIREGLOT_ADMIN_SECRET",
    )
    option(
        parser,
        "--by",
        "NAMES",
        "group by: key, group, model, provider, day, session, outcome, operation, purpose, "
        "agent, client (default: day,model)",
        default="day,model",
    )
    option(
        parser,
        "--since",
        "TIME",
        "start time: 12h, 7d, 4w ago, YYYY-MM-DD or unix seconds (default: 30d)",
        default="30d",
    )
    option(parser, "--until", "TIME", "end time; a date includes the whole day")
    option(parser, "--key", "NAME", "only the client key of this name")
    option(parser, "--group", "NAME", "only the keys of this group")
    option(parser, "--model", "NAME", "only this model (as the provider names it)")
    option(parser, "--provider", "NAME", "only this provider")
    option(parser, "--client", "NAME", "only this client program, such as claude-code")
    option(parser, "--agent", "NAME", "only this sub-agent")
    flag(parser, "--json", "print JSON")
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
            "list the names of all losses",
            "List every feature name that a loss can carry, and what it means.",
        ),
    ):
        parser = commands.add_parser(name, module="listing", help=help, description=description)
        flag(parser, "--json", "print a JSON array")


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
