"""The table of bad input: a row for each command, a column for each kind, what is answered in each cell.

`…` stands for what differs from run to run.
"""

from __future__ import annotations

from typing import Final

from tests.cli.bad_input.case import Case, Cell, interrupted, reader_leaves
from tests.cli.bad_input.world import ADMIN, KEY, WRONG

NO_FILES: Final = "it reads no file that the command line or a configuration could name"
NO_KEYS: Final = "it needs no key"
NO_HOSTS: Final = "it asks nobody"
NO_PORTS: Final = "it listens nowhere"
FREE_PORT: Final = "the port of its own gateway is any that is free"

NO_OUTPUT: Final = "it writes nothing to standard output"
NOT_SHOWN: Final = "the key was created but could not be shown: replace it with `wireglot keys rotate me`"

NO_FILE: Final = "expected a file that can be read, found No such file or directory"


def _configs(line: str) -> tuple[Case, ...]:
    """What every command says of a configuration that cannot be used."""
    reported = {
        "nowhere.toml": f"nowhere.toml: {NO_FILE}",
        "folder": "folder: expected a file that can be read, found Is a directory",
        "broken.toml": "broken.toml: line 1, column 8: expected valid TOML, ']' at the end of a table declaration, found the end of the line",
    }
    named = [Case(f"{line} --config {name}", 2, says) for name, says in reported.items()]
    # What was meant is not known: surely not the configuration of this folder.
    return (
        *named,
        Case(
            f"{line} --config ''",
            2,
            f"argument --config: expected a value, got nothing (see wireglot {_command(line)} --help)",
        ),
    )


def _command(line: str) -> str:
    return line.partition(" ")[0]


STORES: Final = {
    "nostore.toml": "{folder}/note.txt: cannot be made (File exists)",
    "badstore.toml": "{folder}/note.txt: is not a SQLite database; it was not changed. Name another file, or move this one",
    "deadstore.toml": "store.url: PostgreSQL cannot be reached",
}


def _wrong_secrets(line: str) -> tuple[Case, ...]:
    """What every command of the admin API says of a secret that does not authorize it."""
    return (
        Case(f"{line} --url {{gateway}}", 2, NO_SECRET),
        Case(f"{line} --url {{gateway}}", 1, NO_SUCH_SECRET, env={"WIREGLOT_ADMIN_SECRET": WRONG}),
        Case(
            f"{line} --url {{gateway}}",
            2,
            f"WIREGLOT_ADMIN_SECRET: {UNSENDABLE}",
            env={"WIREGLOT_ADMIN_SECRET": "hush hush\n"},
        ),
    )


def _stores(line: str) -> tuple[Case, ...]:
    """What every command that reads the store says of one that cannot be."""
    return (*(Case(f"{line} --config {name}", 1, says) for name, says in STORES.items()),)


def _dead_hosts(line: str, env: dict[str, str], *, most: bool = False) -> tuple[Case, ...]:
    """What every command says of a gateway that does not answer as one."""
    reported = {
        "{refused}": (1, "{refused}: connection refused: check that the gateway runs (`wireglot serve`), and the port"),
        "{silent}": (1, "{silent}: no answer within …"),
        "http://nobody..example": (1, "http://nobody..example: unknown host name"),
        "{tls_at_plain}": (1, "{tls_at_plain}: the server does not use TLS: use http://"),
        "127.0.0.1:8484": (2, "--url: expected http://HOST:PORT, got '127.0.0.1:8484'"),
    }  # fmt: skip
    if most:
        reported |= {
            "{tls}": (1, "{tls}: the server does not speak HTTP: if it uses TLS, use https://"),
            "{untrusted}": (1, "{untrusted}: its certificate is not trusted: unable to get local issuer certificate"),
            "{banner}": (1, "{banner}: the server does not speak HTTP: if it uses TLS, use https://"),
            "{page}": (1, "{page}: status 404, not from a Wireglot gateway: check the address"),
            "{moved}": (1, "{moved}: it redirects to https://gateway.example/: use that address"),
            "http://127.0.0.1:99999": (2, "--url: expected http://HOST:PORT: Port out of range 0-65535"),
            "ftp://me:hush@127.0.0.1/?key=hush": (2, "--url: expected http://HOST:PORT, got 'ftp://127.0.0.1/'"),
        }  # fmt: skip
    return tuple(
        Case(f"{line} --url {url}", status, says, env=env) for url, (status, says) in reported.items()
    )


LOCAL_KEYS: Final = {"WIREGLOT_ADMIN_SECRET": ADMIN}
NO_SECRET: Final = "--url requires the gateway's admin secret in WIREGLOT_ADMIN_SECRET"
NO_SUCH_SECRET: Final = "{gateway} rejects the admin secret in WIREGLOT_ADMIN_SECRET"
UNSENDABLE: Final = "expected a key in plain ASCII without spaces and line breaks"


MADE: Final = ("keys create me",)


def _keys(
    action: str, typos: tuple[Case, ...], quiet: tuple[Case, ...], left: Cell, asked: tuple[Case, ...] = ()
) -> dict[str, Cell]:
    """`quiet`: without a terminal. `left`: without a reader. `asked`: further cases of Ctrl-C."""
    line = f"keys {action}"
    return {
        "typo": (
            Case(
                f"{line} --jsno",
                2,
                f"unknown option --jsno: did you mean --json? (see wireglot keys {_command(action)} --help)",
            ),
            *typos,
        ),
        "missing file": (*_configs_of_actions(line), *_stores(line)),
        "wrong key": _wrong_secrets(line),
        "dead host": _dead_hosts(line, LOCAL_KEYS, most=action == "list"),
        "port in use": NO_PORTS,
        "no terminal": quiet,
        "broken pipe": left,
        "ctrl-c": (*interrupted(line, "wireglot.cli.keys"), *asked),
    }


def _configs_of_actions(line: str) -> tuple[Case, ...]:
    words = line.split()
    return tuple(
        Case(
            each.line,
            each.status,
            each.says.replace(f"wireglot {words[0]} --help", f"wireglot {' '.join(words[:2])} --help"),
        )
        for each in _configs(line)
    )


FILE_OF_TRACE: Final = "one.wgtrace.json"


def _trace(
    action: str, typos: tuple[Case, ...], files: tuple[Case, ...], quiet: tuple[Case, ...]
) -> dict[str, Cell]:
    """`files`: further ones that cannot be used. `quiet`: without a terminal."""
    line = f"trace {action}" if action == "list" else f"trace {action} req_1"
    read = line if action == "list" else f"trace {action} {FILE_OF_TRACE}"
    offline = " --offline" if action == "replay" else ""
    wanted = "its admin secret in WIREGLOT_ADMIN_SECRET, or a client key in WIREGLOT_KEY"
    return {
        "typo": typos,
        "missing file": (*_configs_of_actions(line), *files),
        "wrong key": (
            Case(f"{line} --url {{gateway}}", 2, f"{{gateway}} requires {wanted}"),
            *(
                Case(f"{line} --url {{gateway}}", 1, f"{{gateway}} rejects the secret in {name}", env={name: WRONG})
                for name in ("WIREGLOT_ADMIN_SECRET", "WIREGLOT_KEY")
            ),
            Case(f"{line} --url {{gateway}}", 2, f"WIREGLOT_KEY: {UNSENDABLE}", env={"WIREGLOT_KEY": "hush hush"}),
        ),
        "dead host": _dead_hosts(line, {}, most=action == "list"),
        "port in use": NO_PORTS,
        "no terminal": quiet,
        "broken pipe": reader_leaves(f"{read}{offline}"),
        "ctrl-c": (
            *interrupted(line, "wireglot.cli.trace"),
            Case(f"{line} --url {{silent}}", 130, "interrupted", how="process", while_asking=True),
        ),
    }  # fmt: skip


def _files_of_traces(action: str) -> tuple[Case, ...]:
    line, none = f"trace {action}", "this is no exported trace"
    return (
        Case(f"{line} nowhere.json", 2, "nowhere.json: No such file or directory"),
        Case(f"{line} ./folder", 2, "folder: Is a directory"),
        Case(f"{line} note.txt", 2, "note.txt: expected the JSON of an exported trace: JSON is malformed: …"),
        Case(f"{line} broken.json", 2, "broken.json: expected the JSON of an exported trace: Input data was truncated"),
        Case(f"{line} request.json", 2, f"request.json: format: expected wireglot-trace/1: {none}"),
        Case(f"{line} req_0", 1, "no recorded exchange req_0: see `wireglot trace list`; to search a running gateway, use --url"),
    )  # fmt: skip


def _store(
    action: str, typos: tuple[Case, ...], files: tuple[Case, ...], quiet: tuple[Case, ...], left: Cell
) -> dict[str, Cell]:
    before, line = "store --config", f"store {action}"
    configs = {
        "nowhere.toml": f"nowhere.toml: {NO_FILE}",
        "folder": "folder: expected a file that can be read, found Is a directory",
    }
    dead = "deadstore.toml"
    memory = "the store is in the gateway's memory and cannot be read from here"
    return {
        "typo": (
            Case(
                f"{line} --verbos",
                2,
                f"unknown option --verbos (see wireglot store {_command(action)} --help)",
            ),
            *typos,
        ),
        "missing file": (
            *(Case(f"{before} {name} {action}", 2, says) for name, says in configs.items()),
            *(Case(f"{before} {name} {action}", 1, says) for name, says in STORES.items() if name != dead),
            Case(f"{before} memory.toml {action}", 2, memory),
            *files,
        ),
        "wrong key": _wrong_secrets(line)
        if _command(action) in ("stats", "wipe")
        else "it opens the store as its owner; the password of a server's is part of store.url",
        "dead host": (
            Case(f"{before} {dead} {action}", 1, STORES[dead]),
            *(_dead_hosts(line, LOCAL_KEYS) if _command(action) in ("stats", "wipe") else ()),
        ),
        "port in use": NO_PORTS,
        "no terminal": quiet,
        "broken pipe": left,
        "ctrl-c": interrupted(line, "wireglot.cli.store"),
    }


def _import(program: str, typo: str, file: str, broken: str, says: str) -> dict[str, Cell]:
    line = f"import {program} {file}"
    return {
        "typo": (
            Case(f"import {typo} {file}", 2, f"PROGRAM: expected one of litellm, ccr, got {typo}: did you mean {program}? (see wireglot import --help)"),
            Case(f"import {program}", 2, f"expected FILE (see wireglot import {program} --help)"),
            Case(f"{line} --ouput x", 2, f"unknown option --ouput: did you mean --output? (see wireglot import {program} --help)"),
        ),
        "missing file": (
            Case(f"import {program} nowhere", 2, "nowhere: No such file or directory"),
            Case(f"import {program} folder", 2, "folder: Is a directory"),
            Case(f"import {program} loop", 2, "loop: Too many levels of symbolic links"),
            Case(f"import {program} {broken}", 2, says),
            Case(f"import {program} note.txt", 2, "note.txt: …"),
            Case(f"{line} --output folder", 2, "folder is a folder: name a file with --output"),
            Case(f"{line} --output demo.toml", 2, "demo.toml already exists: --force overwrites it, --output FILE writes elsewhere"),
        ),
        "wrong key": "it sends no key; one that is missing is named as what to set before the start",
        "dead host": NO_HOSTS,
        "port in use": NO_PORTS,
        "no terminal": (Case(line, 0, "…", out="#", note=True),),
        "broken pipe": (*reader_leaves(line), Case(line, 2, "No space left on device", how="disk full")),
        "ctrl-c": interrupted(line, "wireglot.cli.import_.importing"),
    }  # fmt: skip


def _listing(name: str, typo: str) -> dict[str, Cell]:
    return {
        "typo": (
            Case(typo, 2, f"there is no command {typo}: did you mean {name}? (see wireglot --help)"),
            Case(f"{name} extra", 2, f"unexpected argument: extra (see wireglot {name} --help)"),
        ),
        "missing file": NO_FILES,
        "wrong key": NO_KEYS,
        "dead host": NO_HOSTS,
        "port in use": NO_PORTS,
        "no terminal": (Case(name, 0, out=None),),
        "broken pipe": reader_leaves(name),
        "ctrl-c": interrupted(name, "wireglot.cli.listing"),
    }


TABLE: Final[dict[str, dict[str, Cell]]] = {
    "login": {
        "typo": (
            Case("logni", 2, "there is no command logni: did you mean login? (see wireglot --help)"),
            Case("login kimu", 2, "there is no provider kimu: did you mean kimi?"),
            Case("login sk-hush", 2, "there is no provider an argument of 7 characters: `wireglot providers` lists all of them"),
            Case("login kimi --uncheked", 2, "unknown option --uncheked: did you mean --unchecked? (see wireglot login --help)"),
            Case("login ollama", 2, "ollama needs no key: [providers.ollama] enables it"),
        ),
        "missing file": _configs("login kimi"),
        "wrong key": (
            Case("login kimi --key hush", 2, "argument --key: expected -, for standard input: other users can see a key on the command line (see wireglot login --help)"),
            Case("login kimi --key -", 2, "no key was given, nothing was stored"),
            Case("login kimi --key -", 2, "standard input: expected a key in plain ASCII without spaces", given="hush hush"),
        ),
        "dead host": "a provider that does not answer: tests/cli/test_login.py",
        "port in use": NO_PORTS,
        "no terminal": (Case("login", 0, "No provider key found. Store one: wireglot login PROVIDER (`wireglot providers`)", note=True),),
        "broken pipe": reader_leaves("login --json"),
        "ctrl-c": interrupted("login", "wireglot.cli.login"),
    },
    "logout": {
        "typo": (
            Case("logot kimi", 2, "there is no command logot: did you mean logout? (see wireglot --help)"),
            Case("logout", 2, "name a provider: `wireglot login` lists those with a stored key"),
            Case("logout kimu", 2, "there is no provider kimu: did you mean kimi?"),
        ),
        "missing file": _configs("logout kimi"),
        "wrong key": (Case("logout kimi", 1, "no key of kimi is stored"),),
        "dead host": NO_HOSTS,
        "port in use": NO_PORTS,
        "no terminal": (Case("logout kimi", 1, "no key of kimi is stored", how="process"),),
        "broken pipe": NO_OUTPUT,
        "ctrl-c": interrupted("logout kimi", "wireglot.cli.login"),
    },
    "run": {
        "typo": (
            Case("rnu", 2, "there is no command rnu: did you mean run? (see wireglot --help)"),
            Case("run", 2, "name a client (aider, claude, cline, codex, continue, copilot, droid, gemini, goose, hermes, kimi, llm, openclaw, opencode, pi, qwen), or a command with --env (see wireglot run --help)"),
            Case("run cluade", 2, "there is no client cluade: did you mean claude? (see wireglot run --help)"),
            Case("run sk-hush -p hi", 2, "unknown option -p here: put the client's own arguments after -- (see wireglot run --help)"),
            Case("run sk-hush hi", 2, "there is no client an argument of 7 characters: try wireglot run --env openai -- an argument of 7 characters hi (see wireglot run --help)"),
            Case("run claude --modle x", 2, "unknown option --modle: did you mean --model? (see wireglot run --help)"),
            Case("run claude --model demoo/demo", 2, "there is no provider 'demoo': did you mean demo/demo?", how="process"),
            Case("run claude --model clade-opus", 2, "no provider lists the model 'clade-opus': request it as provider/model or add a line to [models] (providers that are on: demo)"),
            Case("run claude --env openai -- true", 2, "--env is for a command after --, without a CLIENT (see wireglot run --help)"),
            Case("run --env opnai -- true", 2, "--env: expected one of anthropic, openai, gemini, got opnai: did you mean openai? (see wireglot run --help)"),
        ),
        "missing file": (
            *_configs("run claude"),
            Case("run claude --log folder", 1, "folder: Is a directory"),
            Case("run --env openai -- nowhere", 127, "nowhere is not installed, or not on the PATH", how="process"),
            Case("run --env openai -- ./script", 126, "./script is not executable: chmod +x ./script", how="process"),
        ),
        "wrong key": (
            Case("run claude --url {gateway}", 2, "the gateway at {gateway} requires a client key: set WIREGLOT_KEY to a key from `wireglot keys create NAME`"),
            Case("run claude --url {gateway}", 1, "the gateway at {gateway} rejects the client key: set WIREGLOT_KEY to a key from `wireglot keys create NAME`", env={"WIREGLOT_KEY": WRONG}),
            Case("run claude --url {gateway}", 2, f"WIREGLOT_KEY: {UNSENDABLE}", env={"WIREGLOT_KEY": "hush hush\n"}),
            Case("run claude --model kimi/kimi-k3", 2, "no key for Moonshot Kimi: set MOONSHOT_API_KEY"),
        ),
        "dead host": _dead_hosts("run claude", {}),
        "port in use": FREE_PORT,
        "no terminal": (
            Case("run claude", 0, "no provider API key found, using the built-in demo model (choose another with --model)\nwireglot: claude on http://127.0.0.1:… (private), demo/demo; set ANTHROPIC_BASE_URL, …", out="started\n", how="process"),
            Case("run --env openai --print-env", 0, "no gateway runs yet: start it with `wireglot serve`", out="export OPENAI", how="process"),
        ),
        "broken pipe": reader_leaves("run --env openai --print-env", "no gateway runs yet: start it with `wireglot serve`"),
        "ctrl-c": (
            *interrupted("run claude", "wireglot.cli.run.launch"),
            Case("run claude --url {silent}", 130, "interrupted", how="process", while_asking=True),
        ),
    },
    "serve": {
        "typo": (
            Case("sreve", 2, "there is no command sreve: did you mean serve? (see wireglot --help)"),
            Case("serve --prot 1", 2, "unknown option --prot: did you mean --port? (see wireglot serve --help)"),
            Case("serve --port http", 2, "argument --port: expected a port from 0 to 65535, got 'http' (see wireglot serve --help)"),
            Case("serve --workers 0", 2, "argument --workers: expected an integer from 1 up, got '0' (see wireglot serve --help)"),
            Case("serve --workers 100000", 2, "configuration: server.workers: expected a whole number from 1 to 256, found 100000"),
            Case("serve --log josn", 2, "--log: expected one of auto, json, pretty, off, got josn: did you mean json? (see wireglot serve --help)"),
            Case("serve --trace long", 2, "argument --trace: expected a number of minutes, at most 1440, got 'long' (see wireglot serve --help)"),
            Case("serve --trace 0", 2, "argument --trace: expected a number of minutes, at most 1440, got '0' (see wireglot serve --help)"),
            Case("serve --model sk-hush", 2, "argument --model: expected NAME=PROVIDER/MODEL, got an argument of 7 characters (see wireglot serve --help)"),
            Case("serve --model claude", 2, "argument --model: expected NAME=PROVIDER/MODEL, got claude (see wireglot serve --help)"),
            Case("serve --model fast=demoo/demo", 2, '--model: expected provider/model of a provider that is on (demo) (did you mean demo?), found "demoo/demo"'),
            Case("serve --config wrong.toml", 2, "wrong.toml: server.prot: expected a field that exists (did you mean port?), found an unknown one"),
            Case("serve --config two.toml", 2, "two.toml: 2 problems\n  server.prot: expected …\n  server.hots: expected …", how="process"),
            Case("serve", 2, 'configuration: WIREGLOT_PORT: expected a whole number from 0 to 65535, found "http"', env={"WIREGLOT_PORT": "http"}),
        ),
        "missing file": (
            *_configs("serve"),
            Case("serve --port 0 --config nostore.toml", 1, "{folder}/note.txt: cannot be made (File exists)", how="process"),
            Case("serve --port 0 --config badstore.toml", 1, "{folder}/note.txt: is not a SQLite database; it was not changed. Name another file, or move this one", how="process"),
            Case("serve", 2, "nowhere.toml: expected a file that can be read, found No such file or directory", env={"WIREGLOT_CONFIG": "nowhere.toml"}),
        ),
        "wrong key": (
            Case("serve --config nokey.toml", 2, "nokey.toml: providers.kimi.api_key: expected a key, or MOONSHOT_API_KEY or KIMI_API_KEY in the environment, found nothing"),
        ),
        "dead host": (Case("serve --host nobody..example --port 0 --config keyed.toml", 1, "cannot listen on nobody..example:0: the host name cannot be resolved", how="process"),),
        "port in use": (
            Case("serve --port {taken}", 1, "cannot listen on 127.0.0.1:{taken}: Address already in use by another program; --port N selects another port, --port 0 any free one", how="process"),
            Case("serve --port {taken} --workers 2", 1, "cannot listen on 127.0.0.1:{taken}: Address already in use by another program; --port N selects another port, --port 0 any free one", how="process"),
            Case("serve --host 192.0.2.1 --config keyed.toml", 1, "cannot listen on 192.0.2.1:8484: Cannot assign requested address: not an address of this machine", how="process"),
        ),
        "no terminal": (
            Case("serve --port 0", 0, '{{"…"event":"listening"…', note=True, how="process", until='"note"', signal="SIGTERM"),
        ),
        "broken pipe": "it writes nothing to standard output; its log may be closed or left (tests/cli/test_serve.py)",
        "ctrl-c": (
            *interrupted("serve --port 0", "wireglot.gateway.app"),
            Case("serve --port 0 --log pretty", 0, "…draining…interrupted again: within …stopped…", note=True, how="process", until="key required"),
            Case("serve --port 0 --workers 2", 0, "…draining…stopped…", note=True, how="process", until="key required", signal="SIGTERM"),
        ),
    },
    "init": {
        "typo": (
            Case("inti", 2, "there is no command inti: did you mean init? (see wireglot --help)"),
            Case("init --ouput x", 2, "unknown option --ouput: did you mean --output? (see wireglot init --help)"),
            Case("init --offline --json --output -", 2, "--json and --output - exclude each other"),
        ),
        "missing file": (
            Case("init --offline --output note.txt/wireglot.toml", 2, "note.txt is no folder"),
            Case("init --offline --output folder", 2, "folder is a folder: name a file with --output"),
            Case("init --offline --output demo.toml", 2, "demo.toml already exists: --force overwrites it, --output FILE writes elsewhere"),
        ),
        "wrong key": "a key that is refused is part of what it finds: tests/cli/init",
        "dead host": "a provider that does not answer is part of what it finds: tests/cli/init",
        "port in use": NO_PORTS,
        "no terminal": (Case("init --offline", 0, out=None),),
        "broken pipe": (*reader_leaves("init --offline"), Case("init --offline --output -", 2, "…wireglot: No space left on device", how="disk full", note=True)),
        "ctrl-c": interrupted("init --offline", "wireglot.cli.init"),
    },
    "doctor": {
        "typo": (
            Case("docter", 2, "there is no command docter: did you mean doctor? (see wireglot --help)"),
            Case("doctor --ofline", 2, "unknown option --ofline: did you mean --offline? (see wireglot doctor --help)"),
        ),
        "missing file": (
            Case("doctor --offline --config nowhere.toml", 1, out=None),
            Case("doctor --offline --config broken.toml", 1, out=None),
            Case("doctor --offline --config badstore.toml", 1, out=None),
        ),
        "wrong key": (Case("doctor --offline --config nokey.toml", 1, out=None),),
        "dead host": "a provider that does not answer is one of its findings: tests/cli/doctor",
        "port in use": "a port that is taken is one of its findings: tests/cli/doctor",
        "no terminal": (Case("doctor --offline --config demo.toml", 0, out=None),),
        "broken pipe": reader_leaves("doctor --offline --config demo.toml"),
        "ctrl-c": interrupted("doctor --offline", "wireglot.cli.doctor.examination"),
    },
    "models": {
        "typo": (
            Case("modles", 2, "there is no command modles: did you mean models? (see wireglot --help)"),
            Case("models --al", 2, "unknown option --al: did you mean --all? (see wireglot models --help)"),
            Case("models demo-gemni", 1, "no available model matches demo-gemni: did you mean demo-gemini?"),
            Case("models kimi-k3", 1, "no available model matches kimi-k3: kimi/kimi-k3 is off, set MOONSHOT_API_KEY or KIMI_API_KEY"),
            Case("models \udcff", 1, "no available model matches …"),
        ),
        "missing file": _configs("models"),
        "wrong key": (Case("models --config nokey.toml", 2, "nokey.toml: providers.kimi.api_key: expected a key, or MOONSHOT_API_KEY or KIMI_API_KEY in the environment, found nothing"),),
        "dead host": NO_HOSTS,
        "port in use": NO_PORTS,
        "no terminal": (Case("models", 0, out="model", how="process"),),
        "broken pipe": reader_leaves("models"),
        "ctrl-c": (
            *interrupted("models", "wireglot.cli.models"),
            # The very first moments: nothing of the program is loaded yet.
            *interrupted("models", "wireglot.cli.parser"),
            Case("models", 143, "terminated", how="process", at="wireglot.cli.models", signal="SIGTERM"),
            Case("models", 129, "the terminal was closed", how="process", at="wireglot.cli.models", signal="SIGHUP"),
        ),
    },
    "config": {
        "typo": (
            Case("confg check", 2, "there is no command confg: did you mean config? (see wireglot --help)"),
            Case("config chek", 2, "ACTION: expected one of check, trust, got chek: did you mean check? (see wireglot config --help)"),
            Case("config check demo.toml --config wrong.toml", 2, "both demo.toml and --config name a file: use one of them"),
            Case("config check wrong.toml", 1, "", out="wrong.toml: 1 problem\n"),
        ),
        "missing file": (
            Case("config check nowhere.toml", 1, "", out="nowhere.toml: 1 problem\n\n  nowhere.toml\n    expected a file that can be read\n"),
            Case("config check folder", 1, "", out="folder: 1 problem\n"),
            Case("config check broken.toml", 1, "", out="broken.toml: 1 problem\n"),
            Case("config check --config nowhere.toml", 1, "", out="nowhere.toml: 1 problem\n"),
            Case("config check ''", 2, "argument PATH: expected a value, got nothing (see wireglot config --help)"),
        ),
        "wrong key": (Case("config check nokey.toml", 1, "", out="nokey.toml: 1 problem\n"),),
        "dead host": NO_HOSTS,
        "port in use": NO_PORTS,
        "no terminal": (Case("config check demo.toml", 0, out="demo.toml: no problems\n"),),
        "broken pipe": (*reader_leaves("config check demo.toml"), *reader_leaves("config check wrong.toml")),
        "ctrl-c": interrupted("config check", "wireglot.cli.config"),
    },
    "import litellm": _import(
        "litellm",
        "litelm",
        "config.yaml",
        "broken.yaml",
        "broken.yaml: line 2: not YAML: expected the node content, but found '<stream end>'",
    ),
    "import ccr": _import(
        "ccr",
        "crc",
        "config.json",
        "broken.json",
        "broken.json: line 1: not JSON: the end of the file in the middle of it",
    ),
    "translate": {
        "typo": (
            Case("translat", 2, "there is no command translat: did you mean translate? (see wireglot --help)"),
            Case("translate", 2, "expected request, response or stream after translate, or --jsonl"),
            Case("translate reqest --from anthropic --to gemini", 2, "KIND: expected one of request, response, stream, got reqest: did you mean request? (see wireglot translate --help)"),
            Case("translate request --form anthropic --to gemini", 2, "unknown option --form: did you mean --from? (see wireglot translate --help)"),
            Case("translate request --from antropic --to gemini", 2, "--from: there is no dialect antropic: did you mean anthropic?"),
            Case("translate request --from anthropic --to gemini --provider gemin", 2, "--provider: there is no provider gemin: did you mean gemini?", given="{}"),
            Case("translate response --from gemini --to anthropic --status many", 2, "argument --status: expected an HTTP status like 429, got 'many' (see wireglot translate --help)"),
            Case("translate stream --from gemini --to gemini --framing ssse", 2, "--framing: expected one of sse, json-array, got ssse: did you mean sse? (see wireglot translate --help)"),
            Case("translate --jsonl --jobs 0", 2, "argument --jobs: expected an integer from 1 up, got '0' (see wireglot translate --help)"),
            Case("translate request --from anthropic --to gemini", 2, "$.messages: expected an array, but the field is missing", given='{"model": 1}'),
        ),
        "missing file": (
            Case("translate request --from anthropic --to gemini --in nowhere.json", 2, "--in nowhere.json: No such file or directory"),
            Case("translate request --from anthropic --to gemini --in folder", 2, "--in folder: Is a directory"),
            Case("translate request --from anthropic --to gemini --in loop", 2, "--in loop: Too many levels of symbolic links"),
            Case("translate request --from anthropic --to gemini --in broken.json", 2, "--in broken.json: $: expected a JSON object: the text ends too early (byte 10)"),
            Case("translate request --from anthropic --to gemini --in note.txt", 2, "--in note.txt: $: expected a JSON object: invalid character (byte 0)"),
            Case("translate request --from anthropic --to gemini --in request.json --out nowhere/out.json", 2, "--out nowhere/out.json: No such file or directory"),
            Case("translate request --from anthropic --to gemini --in request.json --out folder", 2, "--out folder: Is a directory"),
            Case("translate request --from anthropic --to gemini --in request.json --losses folder", 2, "--losses folder: Is a directory"),
            Case("translate response --from gemini --to anthropic --request nowhere.json", 2, "--request nowhere.json: No such file or directory"),
            Case("translate stream --from gemini --to anthropic --in nowhere.sse", 2, "--in nowhere.sse: No such file or directory"),
            Case("translate --jsonl --in nowhere.jsonl", 2, "--in nowhere.jsonl: No such file or directory"),
            Case("translate --jsonl --in folder", 2, "--in folder: Is a directory"),
        ),
        "wrong key": NO_KEYS,
        "dead host": NO_HOSTS,
        "port in use": NO_PORTS,
        "no terminal": (Case("translate request --from anthropic --to gemini --in request.json", 0, "6 losses from anthropic to gemini:\n…", out="{{", note=True),),
        "broken pipe": (
            *reader_leaves("translate request --from anthropic --to gemini --in request.json"),
            *reader_leaves("translate stream --from gemini --to anthropic --in stream.sse"),
            Case("translate request --from anthropic --to gemini --in request.json", 2, "No space left on device", how="disk full"),
            Case("translate request --from anthropic --to gemini --in request.json --out /dev/full", 2, "--out /dev/full: No space left on device"),
            Case("translate --jsonl --in note.txt --out /dev/full", 2, "--out /dev/full: No space left on device"),
            Case("translate request --from anthropic --to gemini", 2, "standard output is closed", how="output closed"),
        ),
        "ctrl-c": (
            *interrupted("translate request --from anthropic --to gemini", "wireglot.cli.translate"),
            Case("translate --jsonl", 143, "terminated", how="process", at="wireglot.cli.translate_dataset", signal="SIGTERM"),
        ),
    },
    "demo": {
        "typo": (
            Case("dem", 2, "there is no command dem: did you mean demo? (see wireglot --help)"),
            Case("demo extra", 2, "unexpected argument: extra (see wireglot demo --help)"),
        ),
        "missing file": NO_FILES,
        "wrong key": "it asks the model that lives inside it, with an empty environment",
        "dead host": "it asks the model that lives inside it",
        "port in use": FREE_PORT,
        "no terminal": (Case("demo", 0, out="A gateway at http://127.0.0.1:", how="process"),),
        "broken pipe": reader_leaves("demo"),
        "ctrl-c": interrupted("demo", "wireglot.cli.demo"),
    },
    "pairs": {
        "typo": (
            Case("pair", 2, "there is no command pair: did you mean pairs? (see wireglot --help)"),
            Case("pairs --form gemini", 2, "unknown option --form: did you mean --from? (see wireglot pairs --help)"),
            Case("pairs --to gemin", 2, "--to: no example in dialect 'gemin': did you mean gemini?"),
        ),
        "missing file": NO_FILES,
        "wrong key": NO_KEYS,
        "dead host": NO_HOSTS,
        "port in use": NO_PORTS,
        "no terminal": (Case("pairs", 0, out="One coding-agent conversation"),),
        "broken pipe": reader_leaves("pairs"),
        "ctrl-c": interrupted("pairs", "wireglot.cli.pairs"),
    },
    "statusline": {
        "typo": (
            Case("statuslin", 2, "there is no command statuslin: did you mean statusline? (see wireglot --help)"),
            Case("statusline --ulr x", 2, "unknown option --ulr: did you mean --url? (see wireglot statusline --help)"),
            Case("statusline", 0, out="wireglot", given="{no json"),
        ),
        "missing file": NO_FILES,
        "wrong key": (
            Case("statusline --url {gateway}", 0, out="wireglot · ", given='{"session_id": "s"}', env={"WIREGLOT_KEY": WRONG}),
        ),
        "dead host": tuple(
            Case(f"statusline --url {url}", 0, out="wireglot · ", given='{"session_id": "s"}')
            for url in ("{refused}", "{silent}", "{tls}", "{banner}", "{page}", "{moved}", "127.0.0.1:8484")
        ),
        "port in use": NO_PORTS,
        "no terminal": (Case("statusline", 0, out="wireglot"),),
        "broken pipe": reader_leaves("statusline"),
        "ctrl-c": interrupted("statusline", "wireglot.cli.statusline"),
    },
    "smoke": {
        "typo": (
            Case("smok", 2, "there is no command smok: did you mean smoke? (see wireglot --help)"),
            Case("smoke --ulr x", 2, "unknown option --ulr: did you mean --url? (see wireglot smoke --help)"),
            Case("smoke sk-hush-0123456789", 2, "unexpected argument: an argument of 18 characters (see wireglot smoke --help)"),
            Case("smoke --provider dmeo", 2, "the gateway lists no model of provider dmeo: did you mean demo?"),
            Case("smoke --model clade-opus", 2, "model: there is no model 'clade-opus': `wireglot models` lists the available models"),
            Case(f"smoke --url {{gateway}} --key {KEY} --model clade-opus", 2, "model: there is no model 'clade-opus': `wireglot models` lists the available models"),
        ),
        "missing file": (
            Case("smoke", 2, "nowhere.toml: expected a file that can be read, found No such file or directory", env={"WIREGLOT_CONFIG": "nowhere.toml"}),
            Case("smoke", 1, "{folder}/note.txt: is not a SQLite database; it was not changed. Name another file, or move this one", env={"WIREGLOT_CONFIG": "badstore.toml"}),
        ),
        "wrong key": (
            Case("smoke --url {gateway}", 2, "{gateway} requires a client key: set --key to a key from `wireglot keys create NAME`"),
            Case(f"smoke --url {{gateway}} --key {WRONG}", 1, "{gateway}: the client key was rejected: set --key to a key from `wireglot keys create NAME`"),
            Case("smoke --url {gateway} --key 'hush hush'", 2, f"--key: {UNSENDABLE}"),
            Case("smoke", 2, "nokey.toml: providers.kimi.api_key: expected a key, or MOONSHOT_API_KEY or KIMI_API_KEY in the environment, found nothing", env={"WIREGLOT_CONFIG": "nokey.toml"}),
        ),
        "dead host": _dead_hosts("smoke", {}, most=True),
        "port in use": FREE_PORT,
        "no terminal": (Case("smoke --provider demo", 0, out="http://127.0.0.1:", how="process"),),
        "broken pipe": reader_leaves("smoke"),
        "ctrl-c": (
            *interrupted("smoke", "wireglot.cli.smoke"),
            Case("smoke --url {silent}", 130, "interrupted", how="process", while_asking=True),
        ),
    },
    "probe": {
        "typo": (
            Case("prob", 2, "there is no command prob: did you mean probe? (see wireglot --help)"),
            Case("probe {gateway} --dialect antropic", 2, "--dialect: expected one of anthropic, openai-chat, openai-responses, gemini, ollama, gemini-interactions, got antropic: did you mean anthropic? (see wireglot probe --help)"),
            Case("probe {gateway}", 2, "--dialect: expected the dialect of the endpoint: anthropic, openai-chat, openai-responses, gemini, ollama, gemini-interactions"),
            Case("probe", 2, "expected a BASE_URL, as in `wireglot probe http://127.0.0.1:8484 --dialect anthropic`"),
            Case("probe {gateway} --dialect gemini --only tool.call", 2, "--only: there is no case tool.call: did you mean tools.call?"),
            Case("probe {gateway} --dialect gemini --budget much", 2, "--budget: expected a number of tokens (200000) or an amount of money (0.50USD)"),
            Case("probe {gateway} --dialect gemini --timeout never", 2, "argument --timeout: expected an integer from 1 up, got 'never' (see wireglot probe --help)"),
            Case("probe 127.0.0.1:8484 --dialect gemini", 2, "BASE_URL: expected http://HOST:PORT or https://HOST/PATH"),
            Case("probe http://me:hush@127.0.0.1/?key=hush --dialect gemini", 2, "BASE_URL: must not contain a user name, password or query; pass a key with --key-env"),
            Case(f"probe {{gateway}} --dialect anthropic --key {KEY} --model clade-opus", 1, "{gateway}: status 404 (not_found_error): model: no provider lists the model 'clade-opus'…: check address, key and model", out=None),
        ),
        "missing file": (
            Case("probe {gateway} --dialect gemini --json nowhere/x.json", 2, "nowhere/x.json: No such file or directory"),
            Case("probe {gateway} --dialect gemini --html folder", 2, "folder: Is a directory"),
            Case("probe {gateway} --dialect gemini --catalog nowhere/x.toml", 2, "nowhere/x.toml: No such file or directory"),
        ),
        "wrong key": (
            Case("probe {gateway} --dialect openai-chat --model demo", 1, "{gateway}/v1: status 401 …: check address, key and model", out=None),
            Case(f"probe {{gateway}} --dialect openai-chat --model demo --key {WRONG}", 1, "{gateway}/v1: status 401 …: check address, key and model", out=None),
            Case("probe {gateway} --dialect gemini --key 'hush hush'", 2, f"--key: {UNSENDABLE}"),
            Case("probe {gateway} --dialect gemini --key-env NOBODY", 2, "--key-env: the variable NOBODY is not set"),
            Case("probe {gateway} --dialect gemini --key-env NOBODY --key x", 2, "--key and --key-env exclude each other"),
        ),
        "dead host": (
            Case("probe {refused} --dialect anthropic --model x", 1, "{refused}: no answer: connection refused", out=None),
            Case("probe http://nobody..example --dialect anthropic --model x --yes", 1, "http://nobody..example: no answer: unknown host name", out=None),
            Case("probe {tls_at_plain} --dialect anthropic --model x", 1, "{tls_at_plain}: no answer: TLS handshake failed: …", out=None),
            Case("probe {page} --dialect anthropic --model x", 1, "{page}: status 404: check address, key and model", out=None),
            Case("probe https://llm.example.com/v1 --dialect openai-chat --model x", 2, "this may cost money: add --yes to run without confirmation (--dry-run shows what is sent)"),
        ),
        "port in use": NO_PORTS,
        "no terminal": (Case("probe --list", 0, out="Whole answers"),),
        "broken pipe": reader_leaves("probe --list"),
        "ctrl-c": (
            *interrupted("probe --list", "wireglot.cli.probe"),
            Case("probe {silent} --dialect anthropic --model x", 130, "interrupted", out=None, how="process", while_asking=True),
        ),
    },
    "usage": {
        "typo": (
            Case("usag", 2, "there is no command usag: did you mean usage? (see wireglot --help)"),
            Case("usage --sicne 7d", 2, "unknown option --sicne: did you mean --since? (see wireglot usage --help)"),
            Case("usage --by modle", 2, "--by: expected one or more of key, group, model, provider, day, session, outcome, operation, purpose, agent, client, separated by commas, got 'modle'"),
            Case("usage --since yesterday", 2, "--since: expected unix seconds, YYYY-MM-DD or a time ago like 12h, 7d, 4w, got 'yesterday'"),
            Case("usage --since 99999999999w", 2, "--since: expected unix seconds, YYYY-MM-DD or a time ago like 12h, 7d, 4w, got '99999999999w'"),
            Case("usage --until 99999999999999999999", 2, "--until: expected unix seconds, YYYY-MM-DD or a time ago like 12h, 7d, 4w, got '99999999999999999999'"),
            Case("usage --admin", 2, "--admin: expected with --url only"),
            Case("usage --api-key x", 2, "--api-key: expected with --url only"),
            Case("usage --url {gateway} --key me", 2, "--key: --admin is required to see the usage of other keys"),
            Case("usage --model \udcff", 0, out="no usage\n"),
        ),
        "missing file": (*_configs("usage"), *_stores("usage"), Case("usage --config memory.toml", 2, "the store is in the gateway's memory: use the gateway with --url")),
        "wrong key": (
            Case("usage --url {gateway}", 2, "{gateway} requires a key: set a valid one in --api-key or WIREGLOT_KEY"),
            Case(f"usage --url {{gateway}} --api-key {WRONG}", 1, "{gateway} rejects the key: set a valid one in --api-key or WIREGLOT_KEY"),
            Case("usage --url {gateway}", 1, "{gateway} rejects the key: set a valid one in --api-key or WIREGLOT_KEY", env={"WIREGLOT_KEY": WRONG}),
            Case("usage --url {gateway} --api-key 'hush hush'", 2, f"--api-key: {UNSENDABLE}"),
            Case("usage --url {gateway} --admin", 2, "--admin: set WIREGLOT_ADMIN_SECRET to the admin secret of that gateway"),
            Case("usage --url {gateway} --admin", 1, "{gateway} rejects the key: set a valid one in WIREGLOT_ADMIN_SECRET", env={"WIREGLOT_ADMIN_SECRET": WRONG}),
        ),
        "dead host": _dead_hosts("usage", {}, most=True),
        "port in use": NO_PORTS,
        "no terminal": (Case("usage", 0, out="no usage\n"),),
        "broken pipe": reader_leaves("usage"),
        "ctrl-c": (
            *interrupted("usage", "wireglot.cli.usage"),
            Case("usage --url {silent}", 130, "interrupted", how="process", while_asking=True),
        ),
    },
    "inspect": {
        "typo": (
            Case("inspct", 2, "there is no command inspct: did you mean inspect? (see wireglot --help)"),
            Case("inspect --no-browsr", 2, "unknown option --no-browsr: did you mean --no-browser? (see wireglot inspect --help)"),
            Case(f"inspect {FILE_OF_TRACE} --url {{gateway}}", 2, "FILE: an exported exchange cannot be combined with --url, --config or --admin"),
        ),
        "missing file": (
            *_configs("inspect"),
            Case("inspect {gateway}", 2, "FILE: expected an exported exchange; the address of a gateway follows --url"),
            Case("inspect nowhere.json", 2, "nowhere.json: No such file or directory"),
            Case("inspect folder", 2, "folder: Is a directory"),
            Case("inspect request.json", 2, "request.json: format: expected wireglot-trace/1: this is no exported trace"),
        ),
        "wrong key": "the page itself asks for the secret",
        "dead host": _dead_hosts("inspect", {}, most=True),
        "port in use": FREE_PORT,
        "no terminal": (Case("inspect --url {gateway}", 0, out="{gateway}/inspector\n"),),
        "broken pipe": reader_leaves("inspect --url {gateway}"),
        "ctrl-c": (
            *interrupted("inspect", "wireglot.cli.inspect"),
            Case("inspect --url {silent}", 130, "interrupted", how="process", while_asking=True),
            Case(f"inspect {FILE_OF_TRACE}", 0, "Served to this machine only, until Ctrl-C.", out="http://127.0.0.1:", how="process", until="until Ctrl-C", note=True),
        ),
    },
    "trace list": _trace(
        "list",
        (
            Case("trac list", 2, "there is no command trac: did you mean trace? (see wireglot --help)"),
            Case("trace lst", 2, "ACTION: expected one of list, show, diff, export, replay, got lst: did you mean list? (see wireglot trace --help)"),
            Case("trace list --modle x", 2, "unknown option --modle: did you mean --model? (see wireglot trace list --help)"),
            Case("trace list --limit 0", 2, "argument --limit: expected an integer from 1 up, got '0' (see wireglot trace list --help)"),
            Case("trace list --model \udcff", 0, out="no exchanges\n"),
            Case("trace list --search \udcff", 0, out="no exchanges\n"),
        ),
        (Case("trace list --config memory.toml", 2, "the store is in the gateway's memory: use the gateway with --url"),),
        (Case("trace list", 0, out="no exchanges\n"),),
    ),
    "trace show": _trace(
        "show",
        (Case("trace show req_1 --ful", 2, "unknown option --ful: did you mean --full? (see wireglot trace show --help)"),),
        _files_of_traces("show"),
        (Case(f"trace show {FILE_OF_TRACE}", 0, out="req_1  running\n"),),
    ),
    "trace diff": _trace(
        "diff",
        (Case("trace diff req_1 --jsno", 2, "unknown option --jsno: did you mean --json? (see wireglot trace diff --help)"),),
        (*_files_of_traces("diff"), Case(f"trace diff {FILE_OF_TRACE} nowhere.json", 2, "nowhere.json: No such file or directory")),
        (Case(f"trace diff {FILE_OF_TRACE}", 0, out="  client request (anthropic) "),),
    ),
    "trace export": _trace(
        "export",
        (Case("trace export req_1 --ouput x", 2, "unknown option --ouput: did you mean --output? (see wireglot trace export --help)"),),
        (*_files_of_traces("export"), Case(f"trace export {FILE_OF_TRACE} --output folder", 2, "folder: Is a directory")),
        (Case(f"trace export {FILE_OF_TRACE}", 0, out='{{\n "format": '),),
    ),
    "trace replay": _trace(
        "replay",
        (
            Case("trace replay req_1 --ofline", 2, "unknown option --ofline: did you mean --offline? (see wireglot trace replay --help)"),
            Case(f"trace replay {FILE_OF_TRACE} --offline --to a/b", 2, "--to: nothing is sent with --offline"),
            Case(f"trace replay {FILE_OF_TRACE} --offline --raw", 2, "--raw: nothing is sent with --offline"),
            Case(f"trace replay {FILE_OF_TRACE}", 2, "no running gateway found to send it again: use --url, or --offline to send nothing"),
        ),
        _files_of_traces("replay"),
        (Case(f"trace replay {FILE_OF_TRACE} --offline", 0, out="= upstream request: same as recorded\n"),),
    ),
    "store stats": _store(
        "stats",
        (Case("store stat", 2, "ACTION: expected one of stats, prune, export, import, wipe, got stat: did you mean stats? (see wireglot store --help)"),),
        (),
        (Case("store stats", 0, out="SQLite "),),
        reader_leaves("store stats"),
    ),
    "store prune": _store(
        "prune",
        (Case("store purne", 2, "ACTION: expected one of stats, prune, export, import, wipe, got purne: did you mean prune? (see wireglot store --help)"),),
        (),
        (Case("store prune", 0, out="nothing to remove\n"),),
        reader_leaves("store prune"),
    ),
    "store export": _store(
        "export",
        (Case("store exprot", 2, "ACTION: expected one of stats, prune, export, import, wipe, got exprot: did you mean export? (see wireglot store --help)"),),
        (
            Case("store export nowhere/out.jsonl", 2, "nowhere/out.jsonl: No such file or directory"),
            Case("store export folder", 2, "folder: Is a directory"),
            Case("store export ''", 2, "argument FILE: expected a value, got nothing (see wireglot store export --help)"),
        ),
        (Case("store export", 0, out="{{", how="process"),),
        (
            *reader_leaves("store export"),
            Case("store export", 2, "No space left on device", how="disk full"),
        ),
    ),
    "store import": _store(
        "import",
        (Case("store improt", 2, "ACTION: expected one of stats, prune, export, import, wipe, got improt: did you mean import? (see wireglot store --help)"),),
        (
            Case("store import nowhere.jsonl", 2, "nowhere.jsonl: No such file or directory"),
            Case("store import folder", 2, "folder: Is a directory"),
            Case("store import note.txt", 2, "note.txt: line 1: not the header of an export of a wireglot store"),
        ),
        (Case("store import", 2, "standard input: line 1: there is nothing; expected the header of an export"),),
        NO_OUTPUT,
    ),
    "store wipe": _store(
        "wipe nobody",
        (
            Case("store wpie me", 2, "ACTION: expected one of stats, prune, export, import, wipe, got wpie: did you mean wipe? (see wireglot store --help)"),
            Case("store wipe", 2, "expected CALLER (see wireglot store wipe --help)"),
        ),
        (),
        (Case("store wipe nobody", 0, out="no data of 'nobody'\n"),),
        reader_leaves("store wipe nobody"),
    ),
    "keys create": _keys(
        "create me",
        (
            Case("keys craete me", 2, "ACTION: expected one of create, update, list, revoke, delete, off, rotate, got craete: did you mean create? (see wireglot keys --help)"),
            Case("keys create", 2, "expected NAME (see wireglot keys create --help)"),
            Case("keys create me/you", 1, 'name: expected a name of letters, digits, \'.\', \'_\', \'@\' and \'-\', but not \'admin\' or \'local\', found "me/you"'),
            Case("keys create \udcff", 1, "name: expected a name of letters, digits, '.', '_', '@' and '-', but not 'admin' or 'local', found text of 1 characters"),
            Case("keys create me --expires soon", 1, "expires: expected a date or a time, like 2027-01-31 or 2027-01-31T18:00:00Z, found text of 4 characters"),
            Case("keys create me --expires 999999999w", 2, "argument --expires: expected at most 5200w (100 years), got '999999999w' (see wireglot keys create --help)"),
            Case("keys create me --concurrent many", 2, "argument --concurrent: expected an integer up to 1000000000000000, got 'many' (see wireglot keys create --help)"),
            Case("keys create me --tokens-per-day 99999999999999999999", 2, "argument --tokens-per-day: expected an integer up to 1000000000000000, got '99999999999999999999' (see wireglot keys create --help)"),
            Case("keys create me --cost-per-day 1e400", 2, "argument --cost-per-day: expected an amount of money like 2.50, got '1e400' (see wireglot keys create --help)"),
        ),
        (Case("keys create me", 0, "This is the key of me. It is shown only once: only its hash is stored.\n…", out="wg-", how="process", note=True),),
        (
            *reader_leaves("keys create me", NOT_SHOWN),
            Case("keys create me", 2, f"No space left on device; {NOT_SHOWN}", how="disk full"),
        ),
    ),
    "keys update": _keys(
        "update me --concurrent 5",
        (
            Case("keys updte me", 2, "ACTION: expected one of create, update, list, revoke, delete, off, rotate, got updte: did you mean update? (see wireglot keys --help)"),
            Case("keys update nobody", 2, "nothing to change: name at least one option (see wireglot keys update --help)"),
            Case("keys update nobody --concurrent 5", 1, 'there is no stored key called "nobody"'),
        ),
        (Case("keys update me --concurrent 5", 0, out="me  wg-", before=MADE),),
        reader_leaves("keys update me --concurrent 5", before=MADE),
    ),
    "keys list": _keys(
        "list",
        (Case("keys lsit", 2, "ACTION: expected one of create, update, list, revoke, delete, off, rotate, got lsit: did you mean list? (see wireglot keys --help)"),),
        (Case("keys list", 0, out="name", before=MADE),),
        reader_leaves("keys list", before=MADE),
        (Case("keys list --url {silent}", 130, "interrupted", env=LOCAL_KEYS, how="process", while_asking=True),),
    ),
    "keys revoke": _keys(
        "revoke me",
        (
            Case("keys rovoke me", 2, "ACTION: expected one of create, update, list, revoke, delete, off, rotate, got rovoke: did you mean revoke? (see wireglot keys --help)"),
            Case("keys revoke nobody", 1, 'there is no stored key called "nobody"'),
        ),
        (Case("keys revoke me", 0, "All gateway processes reject it within seconds. Running requests may finish.", out="me  wg-", before=MADE, note=True),),
        (
            Case(
                "keys revoke me",
                141,
                "All gateway processes reject it within seconds. Running requests may finish.",
                how="pipe left",
                before=MADE,
                note=True,
            ),
        ),
    ),
    "keys delete": _keys(
        "delete me --yes",
        (
            Case("keys delet me", 2, "ACTION: expected one of create, update, list, revoke, delete, off, rotate, got delet: did you mean delete? (see wireglot keys --help)"),
            Case("keys delete nobody --yes", 1, 'there is no stored key called "nobody"'),
        ),
        (Case("keys delete me", 2, "this deletes the key me and stored data of the callers: confirm with --yes", before=MADE),),
        NO_OUTPUT,
    ),
    "keys off": _keys(
        "off --yes",
        (Case("keys", 2, "ACTION: expected one of create, update, list, revoke, delete, off, rotate (see wireglot keys --help)"),
            Case("keys of", 2, "ACTION: expected one of create, update, list, revoke, delete, off, rotate, got of: did you mean off? (see wireglot keys --help)"),),
        (Case("keys off", 2, "this deletes all stored keys (me) and stored data of the callers: confirm with --yes", before=MADE),),
        NO_OUTPUT,
    ),
    "keys rotate": _keys(
        "rotate me",
        (
            Case("keys roatte me", 2, "ACTION: expected one of create, update, list, revoke, delete, off, rotate, got roatte: did you mean rotate? (see wireglot keys --help)"),
            Case("keys rotate nobody", 1, 'there is no stored key called "nobody"'),
            Case("keys rotate me --overlap soon", 2, "argument --overlap: expected a time like 30m, 1h or 7d, got 'soon' (see wireglot keys rotate --help)"),
            Case("keys rotate me --overlap 999999999w", 2, "argument --overlap: expected at most 5200w (100 years), got '999999999w' (see wireglot keys rotate --help)"),
        ),
        (Case("keys rotate me", 0, "The old key is rejected.", out="wg-", before=MADE, note=True),),
        reader_leaves("keys rotate me", NOT_SHOWN, before=MADE),
    ),
    "dialects": _listing("dialects", "dialect"),
    "providers": _listing("providers", "provider"),
    "losses": _listing("losses", "loses"),
    "completion": {
        "typo": (
            Case("complete", 2, "there is no command complete: did you mean completion? (see wireglot --help)"),
            Case("completion", 2, "SHELL: expected one of bash, zsh, fish (see wireglot completion --help)"),
            Case("completion bsh", 2, "SHELL: expected one of bash, zsh, fish, got bsh: did you mean bash? (see wireglot completion --help)"),
        ),
        "missing file": NO_FILES,
        "wrong key": NO_KEYS,
        "dead host": NO_HOSTS,
        "port in use": NO_PORTS,
        "no terminal": (Case("completion bash", 0, out="#", how="process"),),
        "broken pipe": reader_leaves("completion bash"),
        "ctrl-c": interrupted("completion bash", "wireglot.cli.completion"),
    },
}  # fmt: skip
