"""What the page changes of the gateway: keys of providers, and the configuration file; and who may."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.provider_double import BAD_KEY, GOOD_KEY, ProviderDouble, Reply
from tests.gateway.inspector.inspector_kit import ADMIN, KEY, Visitor, configured, keys_table
from tests.tiers import rows
from wireglot.gateway.config.edit import (
    ConfigSource,
    EditRefused,
    HiddenLines,
    beyond_models,
    changed_text,
    content_of,
    digest_of,
    why_unwritable,
    write,
)
from wireglot.gateway.inspector.config_page import ConfigPages
from wireglot.gateway.observe.running import Announcement, RunningGateway
from wireglot.gateway.settings import Settings
from wireglot.http.redaction import Redactor
from wireglot.testing.live_gateway import LiveGateway

CONFIG = "/inspector/api/config"
CHECK = "/inspector/api/config/check"
PROVIDERS = "/inspector/api/providers"
HIDDEN = "hidden-metrics-key-0123456789"


@pytest.fixture
def mine() -> Iterator[ProviderDouble]:
    with ProviderDouble({"mine": Reply(models=("small", "large"))}) as double:
        yield double


def before(mine: ProviderDouble, server: str = "", more: str = "") -> LiveGateway:
    """One whose provider's key is a kept one."""
    text = f'# The file of this test.\n[server]\n{server}\n\n[providers.demo]\n\n[models]\n"fast" = "demo/demo"  # quick\n{more}'
    return LiveGateway(text, environ={"OPENAI_BASE": mine.base("mine")})


@pytest.fixture
def open_door(mine: ProviderDouble) -> Iterator[tuple[LiveGateway, Visitor]]:
    with before(mine) as gateway:
        visitor = Visitor(gateway).browse()
        visitor.look()
        yield gateway, visitor


@pytest.fixture
def admin(mine: ProviderDouble) -> Iterator[tuple[LiveGateway, Visitor]]:
    server = f'admin_secret = "{ADMIN}"\nmetrics_key = "{HIDDEN}"'
    with before(mine, server) as gateway:
        visitor = Visitor(gateway).browse()
        visitor.sign_in(ADMIN)
        yield gateway, visitor


def ask(visitor: Visitor, method: str, path: str, document: Any = None) -> tuple[int, Any]:
    answer = visitor.ask(method, path, document)
    return answer.status, answer.json()


def shown(visitor: Visitor) -> dict[str, Any]:
    status, found = ask(visitor, "GET", CONFIG)
    assert status == 200, found
    assert isinstance(found, dict)
    return found


# The file.


def test_a_rule_is_shown_checked_written_and_in_effect_with_comments_kept(open_door) -> None:
    gateway, visitor = open_door
    found = shown(visitor)
    wanted = {"changes": [{"path": ["models", "slow"], "value": ["demo/demo-gemini", "demo/demo"]}]}
    status, checked = ask(visitor, "POST", CHECK, {"digest": found["digest"], **wanted})
    assert (status, checked["problems"]) == (200, [])
    assert [line for line in checked["difference"] if line[0] in "+-"] == [
        '+slow = ["demo/demo-gemini", "demo/demo"]'
    ]
    windows = {"digest": found["digest"], "text": found["text"].replace("\n", "\r\n") + "# more\r\n"}
    status, checked = ask(visitor, "POST", CHECK, windows)
    assert (status, [line for line in checked["difference"] if line[0] in "+-"]) == (200, ["+# more"])
    status, written = ask(visitor, "PUT", CONFIG, {"digest": found["digest"], **wanted})
    assert (status, written["applied"]) == (200, True)
    text = (gateway.folder / "wireglot.toml").read_text()
    assert "# The file of this test." in text
    assert '"fast" = "demo/demo"  # quick' in text
    assert [rule.match for rule in gateway.process.gateway.settings.rules] == ["fast", "slow"]
    assert shown(visitor)["digest"] == written["digest"]
    removed = {"digest": written["digest"], "changes": [{"path": ["models", "slow"], "value": None}]}
    assert ask(visitor, "PUT", CONFIG, removed)[1]["applied"]
    assert [rule.match for rule in gateway.process.gateway.settings.rules] == ["fast"]


def test_what_the_check_of_the_command_line_refuses_is_not_written(open_door) -> None:
    gateway, visitor = open_door
    found = shown(visitor)
    wanted = {"digest": found["digest"], "changes": [{"path": ["models", "slow"], "value": "nowhere/x"}]}
    _, checked = ask(visitor, "POST", CHECK, wanted)
    (problem,) = checked["problems"]
    assert problem["path"] == "models.slow"
    assert "provider/model of a provider that is on" in problem["expected"]
    status, refused = ask(visitor, "PUT", CONFIG, wanted)
    assert (status, refused["error"]["code"]) == (400, "config_invalid")
    broken = {"digest": found["digest"], "text": "[models\n"}
    _, checked = ask(visitor, "POST", CHECK, broken)
    assert checked["problems"][0]["expected"].startswith("valid TOML")
    assert digest_of((gateway.folder / "wireglot.toml").read_bytes()) == found["digest"]


def test_a_file_that_another_program_has_changed_is_not_overwritten(open_door) -> None:
    gateway, visitor = open_door
    found = shown(visitor)
    file = gateway.folder / "wireglot.toml"
    file.write_text(file.read_text() + "# mine\n")
    wanted = {"digest": found["digest"], "text": found["text"] + '"more" = "demo/demo"\n'}
    status, refused = ask(visitor, "PUT", CONFIG, wanted)
    assert (status, refused["error"]["code"]) == (409, "file_changed")
    assert file.read_text().endswith("# mine\n")


@rows(
    ("change", "named"),
    [
        (
            '[providers.thief]\ndialect = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n',
            "providers.thief",
        ),
        ('[providers.kimi]\napi_key = "file:/etc/passwd"\n', "providers.kimi"),
        ("[trace]\nmode = 'all'\n", "trace"),
        ('[telemetry]\nforward = "http://127.0.0.1:9"\n', "telemetry"),
        ('[keys]\nme = "sha256:' + "0" * 64 + '"\n', "keys"),
    ],
)
def test_without_the_admin_secret_nothing_is_sent_elsewhere_read_or_locked(mine, change, named) -> None:
    with before(mine) as gateway:
        visitor = Visitor(gateway).browse()
        visitor.look()
        found = shown(visitor)
        assert not found["may_change_all"]
        wanted = {"digest": found["digest"], "text": found["text"] + change}
        for method, path in (("POST", CHECK), ("PUT", CONFIG)):
            status, refused = ask(visitor, method, path, wanted)
            assert (status, refused["error"]["code"]) == (403, "admin_needed")
            assert refused["error"]["message"].startswith(f"{named}: ")
        assert digest_of((gateway.folder / "wireglot.toml").read_bytes()) == found["digest"]


def test_without_the_admin_secret_a_file_that_cannot_be_read_is_not_replaced(open_door) -> None:
    _, visitor = open_door
    path = Path(shown(visitor)["path"])
    half = path.read_text() + "\n[server]\nhos"
    path.write_text(half)
    document = {"digest": digest_of(half.encode()), "text": "[models]\n"}
    for method, address in (("POST", CHECK), ("PUT", CONFIG)):
        status, refused = ask(visitor, method, address, document)
        assert (status, refused["error"]["code"]) == (403, "admin_needed")
    assert path.read_text() == half


def test_the_admin_changes_everything_and_sees_no_secret(admin) -> None:
    gateway, visitor = admin
    found = shown(visitor)
    assert found["may_change_all"]
    assert ADMIN not in found["text"]
    assert HIDDEN not in found["text"]
    assert 'metrics_key = "[hidden]"' in found["text"]
    text = found["text"].replace("[providers.demo]", "[providers.demo]\n# also\n[trace]\nkeep_hours = 2\n")
    status, checked = ask(visitor, "POST", CHECK, {"digest": found["digest"], "text": text})
    assert (status, checked["problems"]) == (200, [])
    assert HIDDEN not in json.dumps(checked)
    assert ask(visitor, "PUT", CONFIG, {"digest": found["digest"], "text": text})[1]["applied"]
    after = (gateway.folder / "wireglot.toml").read_text()
    assert f'metrics_key = "{HIDDEN}"' in after
    assert "keep_hours = 2" in after
    assert gateway.process.gateway.settings.server.metrics_key.value == HIDDEN
    assert ADMIN not in (gateway.folder / "log").read_text()


@rows(
    ("method", "path", "document"),
    [
        ("GET", CONFIG, None),
        ("POST", CHECK, {}),
        ("PUT", CONFIG, {}),
        ("POST", f"{PROVIDERS}/demo/try", {}),
        ("PUT", f"{PROVIDERS}/kimi/key", {"key": GOOD_KEY}),
        ("DELETE", f"{PROVIDERS}/kimi/key", None),
    ],
)
def test_only_the_admin_changes_a_gateway_that_wants_keys(method, path, document) -> None:
    with configured(f'admin_secret = "{ADMIN}"', keys_table(filed=KEY)) as gateway:
        stranger = Visitor(gateway).browse()
        stranger.look()
        assert stranger.ask(method, path, document).status == 401
        stranger.sign_in(KEY)
        refused = stranger.ask(method, path, document)
        assert (refused.status, refused.code) == (403, "admin_needed")
        stranger.sign_in(ADMIN)
        if method != "GET":
            stranger.csrf = "wrong"
            forged = stranger.ask(method, path, document)
            assert (forged.status, forged.code) == (403, "csrf_token_wrong")
            other = stranger.ask(method, path, document, origin="http://evil.example")
            assert (other.status, other.code) == (403, "origin_not_allowed")
        assert not (gateway.folder / "wireglot/credentials").exists()


@rows(
    "document",
    [
        {},
        {"text": 7},
        {"changes": []},
        {"changes": [{"path": ["server", "host"], "value": "0.0.0.0"}]},
        {"changes": [{"path": ["models"], "value": {}}]},
        {"changes": [{"path": "models", "value": "x"}]},
        {"changes": [{"path": ["models", "x"]}]},
        {"changes": [{"path": ["models", "x", "y", "z"], "value": 1}]},
    ],
)
def test_a_change_that_is_none_is_refused_by_its_field(mine, document) -> None:
    with before(mine) as gateway:
        visitor = Visitor(gateway).browse()
        visitor.look()
        status, refused = ask(visitor, "POST", CHECK, {"digest": shown(visitor)["digest"], **document})
        assert status == 400
        assert refused["error"]["code"] in ("invalid_value", "invalid_json")


class Heard(Announcement):
    def __init__(self) -> None:
        super().__init__(None)
        self.said: list[RunningGateway] = []

    def __call__(self, about: RunningGateway) -> None:
        self.said.append(about)


def test_a_gateway_without_a_file_writes_the_users_own_and_takes_it_up(tmp_path: Path) -> None:
    with LiveGateway(environ={"XDG_CONFIG_HOME": str(tmp_path / "config")}) as gateway:
        visitor = Visitor(gateway).browse()
        visitor.look()
        found = shown(visitor)
        file = tmp_path / "config/wireglot/wireglot.toml"
        gateway.process._say_again = heard = Heard()
        assert (found["path"], found["exists"], found["text"]) == (str(file), False, "")
        changes = [
            {"path": ["providers", "demo"], "value": {}},
            {"path": ["models", "*"], "value": "demo/demo"},
        ]
        written = ask(visitor, "PUT", CONFIG, {"digest": found["digest"], "changes": changes})[1]
        assert written["applied"], written
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert [rule.match for rule in gateway.process.gateway.settings.rules] == ["*"]
        assert shown(visitor)["exists"]
        assert [running.config for running in heard.said] == [str(file)], "other commands hear where it is"


def test_a_change_that_turns_a_provider_off_says_so(mine: ProviderDouble, tmp_path: Path) -> None:
    """The demo is on by itself as long as there is no other."""
    with LiveGateway(environ={"XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}) as gateway:
        visitor = Visitor(gateway).browse()
        visitor.look()

        def turning_on(*names: str) -> dict[str, Any]:
            changes = [{"path": ["providers", name], "value": {}} for name in names]
            return {"digest": shown(visitor)["digest"], "changes": changes}

        alone = ask(visitor, "POST", CHECK, turning_on("ollama"))[1]
        assert alone["notes"][-1] == "provider demo is now off"
        both = ask(visitor, "POST", CHECK, turning_on("demo", "ollama"))[1]
        assert not any("no longer" in note for note in both["notes"])
        kept = ask(visitor, "PUT", f"{PROVIDERS}/kimi/key", {"key": GOOD_KEY, "unchecked": True})[1]
        assert (kept["applied"], kept["off"]) == (True, ["demo"])
        assert ask(visitor, "PUT", CONFIG, turning_on("demo"))[1]["applied"]
        assert {"demo", "kimi"} <= set(gateway.process.gateway.settings.providers)


def test_a_provider_that_takes_no_key_is_tried_without_one(mine: ProviderDouble) -> None:
    table = f'[providers.near]\ndialect = "openai-chat"\nbase_url = "{mine.base("near")}"\n'
    hosts: Any = mine.hosts
    hosts["near"] = Reply(models=("small",), wants_key=False)
    with LiveGateway(table) as gateway:
        visitor = Visitor(gateway).browse()
        visitor.look()
        tried = ask(visitor, "POST", f"{PROVIDERS}/near/try", {})[1]
        assert (tried["verdict"], tried["sentence"], tried["models"]) == ("good", "near answers", 1)
        assert tried["outcome"] == "taken"


def test_what_the_file_does_not_decide_is_said() -> None:
    source = ConfigSource(
        Path("x"), {"WIREGLOT_PORT": "1", "WIREGLOT_MODELS": "a=b/c"}, {"server": {"host": "h"}}
    )
    assert source.variables() == [
        "WIREGLOT_PORT sets server.port",
        "WIREGLOT_MODELS sets models",
        "the command line sets server.host",
    ]


# Keys of providers.

FILE = "[providers]\ndiscover = false\n[providers.demo]\n"


def keyed(mine: ProviderDouble, more: str = "") -> LiveGateway:
    """`openai` is off until its key is there, and its host is the double."""
    return LiveGateway(
        f'[providers.demo]\n[providers.mine]\ndialect = "openai-chat"\nbase_url = "{mine.base("mine")}"\n'
        f'api_key = "env:MINE_KEY"\n{more}',
        environ={"MINE_KEY": ""},
    )


@pytest.fixture
def kept(mine: ProviderDouble, tmp_path: Path) -> Iterator[tuple[LiveGateway, Visitor]]:
    """A provider whose key is a kept one that has expired."""
    (tmp_path / "wireglot").mkdir()
    (tmp_path / "wireglot/credentials").write_text(f"MINE_KEY={BAD_KEY}\n")
    (tmp_path / "wireglot/credentials").chmod(0o600)
    text = f'[providers.mine]\ndialect = "openai-chat"\nbase_url = "{mine.base("mine")}"\napi_key = "env:MINE_KEY"\n'
    with LiveGateway(text, folder=tmp_path) as gateway:
        visitor = Visitor(gateway).browse()
        visitor.look()
        yield gateway, visitor


def test_a_key_is_tried_kept_and_in_effect_and_never_repeated(kept, mine: ProviderDouble) -> None:
    gateway, visitor = kept
    status, tried = ask(visitor, "POST", f"{PROVIDERS}/mine/try", {})
    assert (status, tried["verdict"]) == (200, "refused")
    assert tried["sentence"] == "mine rejects the key (it says: Incorrect API key provided: [redacted].)"
    status, refused = ask(visitor, "PUT", f"{PROVIDERS}/mine/key", {"key": BAD_KEY + "x"})
    assert (status, refused["kept"], refused["verdict"]) == (200, False, "refused")
    status, found = ask(visitor, "PUT", f"{PROVIDERS}/mine/key", {"key": f" {GOOD_KEY} "})
    assert (status, found["kept"], found["applied"], found["sentence"]) == (
        200,
        True,
        True,
        "mine accepts the key",
    )
    place = gateway.folder / "wireglot/credentials"
    assert f"MINE_KEY={GOOD_KEY}\n" in place.read_text()
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    (credential,) = gateway.process.gateway.settings.providers["mine"].credentials
    assert credential.secret.value == GOOD_KEY
    assert ask(visitor, "POST", f"{PROVIDERS}/mine/try", {})[1]["verdict"] == "good"
    setup = visitor.get("/inspector/api/setup").body.decode()
    (mine_row,) = (each for each in json.loads(setup)["providers"] if each["name"] == "mine")
    assert (mine_row["key"], mine_row["kept"]) == ("file", "MINE_KEY")
    listed = visitor.get("/inspector/api/exchanges").body.decode()
    for text in (setup, listed, json.dumps([tried, refused, found]), (gateway.folder / "log").read_text()):
        assert GOOD_KEY not in text
        assert BAD_KEY not in text


def test_a_key_that_the_configuration_needs_is_not_removed(kept) -> None:
    gateway, visitor = kept
    status, refused = ask(visitor, "DELETE", f"{PROVIDERS}/mine/key")
    assert (status, refused["error"]["code"]) == (400, "key_needed")
    assert "providers.mine.api_key" in refused["error"]["message"]
    assert BAD_KEY in (gateway.folder / "wireglot/credentials").read_text()


def test_a_discovered_provider_comes_and_goes_with_its_key(open_door) -> None:
    gateway, visitor = open_door
    status, found = ask(visitor, "PUT", f"{PROVIDERS}/kimi/key", {"key": GOOD_KEY, "unchecked": True})
    assert (status, found["kept"], found["applied"]) == (200, True, True)
    assert "kimi" in gateway.process.gateway.settings.providers
    status, found = ask(visitor, "DELETE", f"{PROVIDERS}/kimi/key")
    assert (status, found["kept"], found["applied"]) == (200, False, True)
    assert "kimi" not in gateway.process.gateway.settings.providers
    assert GOOD_KEY not in (gateway.folder / "wireglot/credentials").read_text()


@rows(
    ("provider", "document", "status", "code"),
    [
        ("nobody", {"key": "x"}, 404, "provider_unknown"),
        ("demo", {"key": "x"}, 400, "no_key_wanted"),
        ("kimi", {}, 400, "invalid_value"),
        ("kimi", {"key": "two words"}, 400, "invalid_value"),
        ("kimi", {"key": "x" * 20_000}, 400, "invalid_value"),
        ("kimi", {"key": "x", "unchecked": 1}, 400, "invalid_value"),
        ("azure", {"key": "x"}, 400, "provider_off"),
    ],
)
def test_a_key_that_cannot_be_kept_is_refused_by_its_reason(mine, provider, document, status, code) -> None:
    with before(mine) as gateway:
        visitor = Visitor(gateway).browse()
        visitor.look()
        answer = visitor.ask("PUT", f"{PROVIDERS}/{provider}/key", document)
        assert (answer.status, answer.code) == (status, code)


# Pieces.

TEXT = '[server]\nadmin_secret = "a-very-secret-word"  # mine\n[providers.a]\napi_key = "short"\nbase_url = "http://h"\n'


def hidden(text: str = TEXT) -> HiddenLines:
    return HiddenLines(text, Redactor(["a-very-secret-word"]))


def test_what_is_hidden_comes_back_where_it_was() -> None:
    found = hidden()
    assert found.text == (
        '[server]\nadmin_secret = "[hidden]"  # mine\n[providers.a]\napi_key = "[hidden]"\nbase_url = "http://h"\n'
    )
    assert found.restored(found.text) == TEXT
    assert found.restored(found.text.replace("http://h", "http://g")) == TEXT.replace("http://h", "http://g")
    assert found.restored(found.text.replace('api_key = "[hidden]"\n', "")) == TEXT.replace(
        'api_key = "short"\n', ""
    )
    changed = TEXT.replace("short", "other")
    assert found.difference(changed)[-4:-2] == ['-api_key = "[hidden]"', '+api_key = "[hidden]"  # changed']


@rows(
    ("old", "new"),
    [
        ('api_key = "[hidden]"', 'title = "[hidden]"'),
        ("[providers.a]", "[providers.b]"),
        ('api_key = "[hidden]"', 'api_key = "[hidden]"\napi_key = "[hidden]"'),
        ('base_url = "http://h"', 'base_url = "http://[hidden]"'),
    ],
)
def test_a_hidden_value_goes_nowhere_else(old: str, new: str) -> None:
    found = hidden()
    with pytest.raises(EditRefused, match=r"a line with \[hidden\] must stay"):
        found.restored(found.text.replace(old, new))


def test_a_password_in_a_url_is_hidden_also_where_a_variable_overrides_it() -> None:
    line = 'url = "postgresql://wireglot:hush-hush@db/x"\n'
    found = HiddenLines(line, Redactor())
    assert found.text == 'url = "postgresql://wireglot:[hidden]@db/x"\n'
    assert found.restored(found.text) == line


@rows(
    "line, expected",
    [
        ('# api_key = "deadbeef"', '# api_key = "[hidden]"'),
        ('x = {dialect = "a", api_key = "deadbeef"}', 'x = {dialect = "a", api_key = "[hidden]"}'),
        ('api_key = """deadbeef"""', 'api_key = """[hidden]"""'),
        ("api_keys = ['deadbeef', \"env:A\"]  # two", "api_keys = [[hidden]]  # two"),
        ('api_keys = ["env:A", "file:b"]', 'api_keys = ["env:A", "file:b"]'),
        ('models = ["a"]', 'models = ["a"]'),
        (
            'headers = { x-team-key = "deadbeef", X-Auth="b" }',
            'headers = { x-team-key = "[hidden]", X-Auth="[hidden]" }',
        ),
        ('"Proxy-Authorization" = "deadbeef"', '"Proxy-Authorization" = "[hidden]"'),
        ('Cookie = "a=deadbeef"', 'Cookie = "[hidden]"'),
        ('auth = "bearer"', 'auth = "bearer"'),
        ('api_key = "dead\\"beef"', 'api_key = "[hidden]"'),
        (r"api_key = 'C:\dead\'  # mine", "api_key = '[hidden]'  # mine"),
        (r'# api_key = "C:\dead\beef', '# api_key = "[hidden]'),
        ("token = 'dead", "token = '[hidden]"),
        ('"api\\u005fkey" = "deadbeef"', '"api\\u005fkey" = "[hidden]"'),
        ('headers = { "x-team-k\\u0065y" = "deadbeef" }', 'headers = { "x-team-k\\u0065y" = "[hidden]" }'),
    ],
)
def test_a_secret_that_is_not_in_effect_is_hidden_by_its_name(line: str, expected: str) -> None:
    assert hidden(line).text == expected
    assert hidden(line).restored(expected) == line


@rows(
    "text, expected",
    [
        (
            'api_keys = [\n  "one",  # "old"\n  "env:TWO", \'three\',\n] # "a"\ntitle = "t"',
            'api_keys = [\n  "[hidden]",  # "[hidden]"\n  "env:TWO", \'[hidden]\',\n] # "[hidden]"\ntitle = "t"',
        ),
        (
            '# api_keys = [ "one",\n#   "two" ]\nmodels = [\n "m",\n]',
            '# api_keys = [[hidden]\n#   "[hidden]" ]\nmodels = [\n "m",\n]',
        ),
        (
            'x = { api_keys = [\n "a]b",\n "c" ], title = "t" }\ny = "z"',
            'x = { api_keys = [\n "[hidden]",\n "[hidden]" ], title = "[hidden]" }\ny = "z"',
        ),
        (
            'secret = """\none\ntwo""" # x\ny = "z"',
            'secret = """[hidden]\n[hidden]\n[hidden]""" # x\ny = "z"',
        ),
        ("token = '''one\ntwo\n'''\ny = 1", "token = '''[hidden]\n[hidden]\n[hidden]'''\ny = 1"),
        ('api_keys = [\n  "never closed', 'api_keys = [\n  "[hidden]"'),
        ('token = """one\\"""two\nthree"""\ny = 1', 'token = """[hidden]\n[hidden]"""\ny = 1'),
    ],
)
def test_a_secret_on_several_lines_is_hidden_by_its_name(text: str, expected: str) -> None:
    assert hidden(text).text == expected
    assert hidden(text).restored(expected) == text
    assert "one" not in "\n".join(hidden(text).difference(text + "\n# more"))


def test_of_hidden_lines_that_look_alike_none_comes_back_in_the_place_of_another() -> None:
    found = hidden('api_keys = [\n  "one",\n  "two",\n]\n')
    for text in (
        found.text.replace('  "[hidden]",\n', "", 1),
        found.text.replace("]\n", '  "[hidden]",\n]\n'),
    ):
        with pytest.raises(EditRefused, match="equal lines"):
            found.restored(text)
    assert found.restored(found.text + "# more\n").startswith('api_keys = [\n  "one",\n  "two",\n]')


def test_many_lines_of_a_list_are_shown_in_no_time() -> None:
    text = "api_keys = [" + '\n"a", [' * 50_000
    assert hidden(text).text.count("[hidden]") == 50_000


@rows("url", ["://:", "://a:b"])
def test_a_line_of_many_urls_is_shown_in_no_time(url: str) -> None:
    """It would take an hour if each were read to the end of the line."""
    text = f'x = "{url * 100_000}"'
    assert hidden(text).text == text
    assert hidden(f'x = "{url} http://u:pass@host"').text == f'x = "{url} http://u:[hidden]@host"'


def test_of_a_long_text_what_changed_is_shown_as_one_block() -> None:
    """Comparing all lines with one another takes their product."""
    lines = [f"# {number}" for number in range(3000)]
    found = HiddenLines("\n".join(lines), Redactor())
    changed = [lines[0], *reversed(lines[1:-1]), lines[-1]]
    assert found.difference("\n".join(changed)) == [
        "@@ -2,2998 +2,2998 @@",
        *(f"-{line}" for line in lines[1:-1]),
        *(f"+{line}" for line in changed[1:-1]),
    ]
    lines[2000] = "# here"
    assert found.difference("\n".join(lines)) == [
        "@@ -1998,7 +1998,7 @@",
        *(" # 1997", " # 1998", " # 1999", "-# 2000", "+# here", " # 2001", " # 2002", " # 2003"),
    ]


def test_content_that_its_user_has_not_approved_is_neither_shown_nor_built_upon(tmp_path: Path) -> None:
    """A change of it would be approved with all that a pull has brought along."""
    file = tmp_path / "wireglot.toml"
    agreed = b"[providers.demo]\n"
    file.write_bytes(agreed + b"# pulled\n")
    source = ConfigSource(file, why_not=lambda content: "" if content == agreed else "it is not approved")
    pages = ConfigPages(source, Settings, None, lambda *_, **__: None)
    with pytest.raises(EditRefused, match="it is not approved"):
        pages._content(file)
    file.write_bytes(agreed)
    assert pages._content(file) == agreed
    source = ConfigSource(file)
    file.write_bytes(b"\xff")
    with pytest.raises(EditRefused, match="is not text in UTF-8"):
        ConfigPages(source, Settings, None, lambda *_, **__: None)._content(file)


def test_values_change_and_comments_stay() -> None:
    text = (
        '# top\n[models]\n# fast ones\n"fast" = "a/b"  # quick\nslow = ["a/c"]\n\n[server]\nport = 1 # one\n'
    )
    changed = changed_text(text, [(["models", "fast"], ["a/x", "a/y"]), (["models", "new.one"], "a/z")])
    assert changed == (
        '# top\n[models]\n# fast ones\n"fast" = ["a/x", "a/y"]  # quick\nslow = ["a/c"]\n"new.one" = "a/z"\n\n'
        "[server]\nport = 1 # one\n"
    )
    assert changed_text(text, [(["models", "slow"], None)]) == text.replace('slow = ["a/c"]\n', "")
    assert changed_text("", [(["providers", "kimi"], {}), (["models", "*"], "kimi/k")]) == (
        '[providers.kimi]\n\n[models]\n"*" = "kimi/k"\n'
    )
    named = "[providers.kimi]  # ours\nmodels = ['k']\n"
    assert changed_text(named, [(["providers", "kimi"], {})]) == named
    with pytest.raises(EditRefused, match="edit its text"):
        changed_text("models = 3\n", [(["models", "x"], "a/b")])
    with pytest.raises(EditRefused, match="edit its text"):
        changed_text("", [(["models", "x"], [None])])


def test_which_tables_are_beyond_models() -> None:
    assert beyond_models({}, {"models": {"a": "b/c"}, "prices": {}, "losses": "strict"}) == []
    assert beyond_models({}, {"providers": {"kimi": {"models": ["x"]}}}) == []
    assert beyond_models({"providers": {"kimi": {}}}, {"providers": {}}) == ["providers.kimi"]
    assert beyond_models({}, {"providers": {"discover": False}}) == ["providers.discover"]
    assert beyond_models({"server": {"port": 1}}, {}) == ["server"]


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_mode_and_link_of_a_file_stay_and_nothing_half_written_is_left(tmp_path: Path) -> None:
    real, link = tmp_path / "real.toml", tmp_path / "wireglot.toml"
    real.write_bytes(b"a = 1\n")
    real.chmod(0o640)
    link.symlink_to(real)
    approved: list[bytes] = []
    source = ConfigSource(link, approve=lambda path, content: approved.append(content))
    write(source, link, digest_of(b"a = 1\n"), b"a = 2\n")
    assert link.is_symlink()
    assert (real.read_bytes(), stat.S_IMODE(real.stat().st_mode)) == (b"a = 2\n", 0o640)
    assert approved == [b"a = 2\n"]
    with pytest.raises(EditRefused, match="changed by another program"):
        write(source, link, digest_of(b"a = 1\n"), b"a = 3\n")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["real.toml", "wireglot.toml"]


@pytest.mark.skipif(os.name != "posix", reason="links need a right there")
def test_a_link_that_leads_nowhere_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "wireglot.toml"
    file.symlink_to(file)
    assert why_unwritable(file) == ""  # what is wrong with it is said when it is read
    for refused in (
        lambda: content_of(file),
        lambda: write(ConfigSource(file), file, digest_of(b""), b"a = 1\n"),
    ):
        with pytest.raises(EditRefused, match="symbolic links"):
            refused()


def test_a_file_that_cannot_be_written_is_reported_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "wireglot.toml"
    assert why_unwritable(tmp_path / "below/wireglot.toml") == ""
    file.write_text("")
    assert why_unwritable(file) == ""
    refused = {file}
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) not in refused)
    assert why_unwritable(file) == f"{file} is read-only for the gateway"
    refused = {tmp_path}
    assert "written by replacing it" in why_unwritable(file)
