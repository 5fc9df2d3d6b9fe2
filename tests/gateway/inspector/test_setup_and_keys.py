"""The page of a fresh start, the question to the demo model, and keys with their budgets."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from tests.gateway.inspector.inspector_kit import ADMIN, KEY, Visitor, configured, keys_table
from tests.tiers import rows
from tests.waiting import wait_until
from wireglot.gateway.inspector.setup_page import CLIENTS
from wireglot.testing.live_gateway import LiveGateway

SETUP = "/inspector/api/setup"
ASK = "/inspector/api/ask"
KEYS = "/inspector/api/keys"
PROVIDER_KEY = "sk-provider-key-0123456789"


@pytest.fixture(scope="module")
def fresh():
    with LiveGateway() as gateway:
        visitor = Visitor(gateway).browse()
        visitor.look()
        yield visitor


@pytest.fixture
def admin():
    with configured(f'admin_secret = "{ADMIN}"', keys_table(filed=KEY)) as gateway:
        visitor = Visitor(gateway).browse()
        visitor.sign_in(ADMIN)
        yield visitor


def test_a_fresh_start_says_what_is_on_and_why_the_rest_is_not(fresh):
    reported = fresh.get(SETUP).json()
    assert reported["base_url"] == fresh.origin
    assert (reported["demo"], reported["needs_key"], reported["models"][0]) == (True, False, "demo")
    on = {each["name"] for each in reported["providers"] if each["on"]}
    assert on == {"demo"}
    off = {each["name"]: each for each in reported["providers"] if not each["on"]}
    assert reported.keys() == {
        "base_url", "version", "needs_key", "demo", "models", "model_count", "clients", "config", "providers", "rules",
    }  # fmt: skip
    assert reported["model_count"] == len(reported["models"]) > 0
    (demo,) = (each for each in reported["providers"] if each["on"])
    key = {"key", "kept", "keeps_as", "instead"}
    assert demo.keys() == {"name", "title", "on", "why", "dialects", "host", "models"} | key
    assert off["kimi"].keys() == {"name", "title", "on", "why", "variables", "dialects"} | key
    assert off["kimi"]["variables"][0] == "MOONSHOT_API_KEY"
    assert "MOONSHOT_API_KEY" in off["kimi"]["why"]
    assert all(each["why"] for each in reported["providers"])


def test_what_is_copied_leads_here(fresh):
    reported = fresh.get(SETUP).json()
    assert {each["name"] for each in reported["clients"]} == {each.name for each in CLIENTS}
    for client in reported["clients"]:
        assert fresh.origin in client["text"], client
        assert not re.search(r"\{(url|key|model)\}", client["text"])
        assert (Path(__file__).parents[3] / client["page"]).is_file()


def test_what_is_copied_is_valid_in_its_language(fresh):
    """Shell commands, a file of settings, programs: each begins with what its kind says."""
    reported = fresh.get(SETUP).json()["clients"]
    assert {each["name"]: (each["title"], each["kind"], each["run"]) for each in reported} == {
        "claude-code": ("Claude Code", "sh", "wireglot run claude"),
        "codex": ("Codex", "toml", "wireglot run codex"),
        "gemini-cli": ("Gemini CLI", "sh", "wireglot run gemini"),
        "openai-sdk": ("OpenAI SDK", "python", ""),
        "anthropic-sdk": ("Anthropic SDK", "python", ""),
        "google-genai": ("google-genai", "python", ""),
        "curl": ("curl", "sh", ""),
        "any": ("Any program made with a vendor's SDK", "sh", "wireglot run -- PROGRAM"),
    }
    for each in reported:
        match each["kind"]:
            case "toml":
                assert tomllib.loads(each["text"])["model"] == "demo"
            case "python":
                compile(each["text"], each["name"], "exec")
                assert '"none"' in each["text"], "no key is needed"
            case _:
                assert shlex.split(each["text"])[0] in ("export", "curl")


def test_a_visitor_with_a_key_is_shown_where_it_goes():
    with configured(f'admin_secret = "{ADMIN}"', keys_table(filed=KEY)) as gateway:
        visitor = Visitor(gateway)
        visitor.sign_in(KEY)
        reported = visitor.get(SETUP).json()
        assert reported["needs_key"] is True
        assert not reported.keys() & {"config", "providers", "rules"}, "for who runs the gateway"
        assert all(re.search(r"\bYOUR_KEY\b", each["text"]) for each in reported["clients"])


def test_where_no_model_is_permitted_its_place_is_named():
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    table = f'[keys.ada]\nhash = "sha256:{digest}"\nmodels = ["nobodys/*"]\n'
    with configured(f'admin_secret = "{ADMIN}"', table) as gateway:
        visitor = Visitor(gateway)
        visitor.sign_in(KEY)
        reported = visitor.get(SETUP).json()
        assert (reported["models"], reported["model_count"]) == ([], 0)
        texts = {each["name"]: each["text"] for each in reported["clients"]}
        assert 'model="MODEL"' in texts["openai-sdk"]
        assert '"model": "MODEL"' in texts["curl"]


def test_the_rules_and_the_providers_that_are_off_are_reported_in_order(fresh):
    with LiveGateway('[providers.kimi]\napi_key = "x"\n[models]\n"m*" = ["kimi/a", "kimi/*"]\n') as gateway:
        visitor = Visitor(gateway)
        visitor.look()
        reported = visitor.get(SETUP).json()
        assert reported["rules"] == [{"match": "m*", "to": ["kimi/a", "kimi/*"]}]
        (kimi,) = (each for each in reported["providers"] if each["name"] == "kimi")
        assert (kimi["host"], kimi["models"] > 0) == ("api.moonshot.ai", True)
    listed = [each for each in fresh.get(SETUP).json()["providers"] if not each["on"]]
    off = {each["name"]: each["why"] for each in listed}
    names = list(off)
    assert names[:5] == ["anthropic", "code-assist", "gemini", "openai", "vertex"], (
        "the dialects' own vendors"
    )
    assert names[5:] == sorted(names[5:])
    assert all(each["variables"] or "it needs no key" in each["why"] for each in listed)
    assert off["openai"] == "OPENAI_API_KEY is not set"
    assert off["ollama"] == "it needs no key: [providers.ollama] turns it on"


def test_a_host_that_would_do_something_in_a_shell_is_not_copied(fresh):
    port = fresh.origin.rpartition(":")[2]
    for host in (f"127.0.0.1:{port};id", "127.0.0.1:$(id)", "127.0.0.1:80 x", "localhost:999999"):
        answer = fresh.get(SETUP, host=host)
        assert answer.status in (400, 403) or "http://127.0.0.1:0" in answer.json()["base_url"], answer.body


def test_no_secret_is_reported():
    toml = f'[providers.kimi]\napi_key = "{PROVIDER_KEY}"\n[server]\nadmin_secret = "{ADMIN}"\n'
    with LiveGateway(toml) as gateway:
        visitor = Visitor(gateway)
        visitor.look()
        for path in (SETUP, "/inspector/api/dashboard", "/inspector/api/session"):
            body = visitor.get(path).body.decode()
            assert PROVIDER_KEY not in body
            assert ADMIN not in body
        kimi = next(each for each in visitor.get(SETUP).json()["providers"] if each["name"] == "kimi")
        assert (kimi["on"], kimi["why"]) == (True, "key from config")


def test_the_demo_model_answers(fresh):
    reported = fresh.post(ASK, {}).json()
    assert (reported["status"], reported["model"]) == (200, "demo/demo-gemini")
    assert reported["id"].startswith("req_")
    row = fresh.get(f"/inspector/api/exchanges/{reported['id']}").json()["row"]
    assert (row["agent"], row["client"], row["stream"]) == ("wireglot-inspector", "wireglot-inspector", True)
    assert row["path"] == "/v1/chat/completions"
    other = fresh.post(ASK, {"model": "demo/demo-gemini", "text": "Hello", "stream": False}).json()
    assert other["status"] == 200


def test_a_question_that_fails_is_reported_with_its_id(fresh):
    reported = fresh.post(ASK, {"model": "nothing-like-it", "text": "x"}).json()
    assert reported["status"] == 404
    assert "nothing-like-it" in reported["error"]["message"]


@rows(
    ("document", "field"),
    [
        ({"model": 5}, "model"), ({"text": []}, "text"), ({"text": "x" * 100_001}, "text"), ({"stream": "yes"}, "stream"),
        ({"temperature": 1}, "temperature"),
    ],
)  # fmt: skip
def test_a_bad_question_names_its_field(fresh, document, field):
    answer = fresh.post(ASK, document)
    assert (answer.status, answer.json()["error"]["param"]) == (400, field)


def test_without_the_demo_a_model_must_be_named():
    with LiveGateway("[providers]\ndiscover = false\n") as gateway:
        visitor = Visitor(gateway)
        visitor.look()
        assert visitor.post(ASK, {}).status == 400
        assert visitor.get(SETUP).json()["demo"] is False


def test_a_key_asks_as_itself_and_no_more():
    toml = f'[keys.narrow]\nhash = "sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"\n'
    with configured("", toml + 'models = ["demo/demo-gemini"]\n') as gateway:
        visitor = Visitor(gateway)
        visitor.sign_in(KEY)
        assert visitor.post(ASK, {"model": "demo/demo"}).json()["status"] == 403
        assert visitor.post(ASK, {"model": "demo/demo-gemini"}).json()["status"] == 200
        assert visitor.get(SETUP).json()["models"] == ["demo/demo-gemini"]
        assert gateway.wait_log(2)[-1]["key"] == "narrow"


# Keys.


def test_keys_are_made_changed_and_revoked(admin):
    made = admin.post(KEYS, {"name": "team", "tokens_per_day": 1000, "cost_per_month": 2.5})
    assert made.status == 201
    assert made.headers["cache-control"] == "no-store"
    secret = made.json()["key"]
    listed = {key["name"]: key for key in admin.get(KEYS).json()["data"]}
    assert secret not in json.dumps(listed), "reported once"
    assert (listed["team"]["tokens_per_day"], listed["team"]["cost_per_month"]) == (1000, 2.5)
    assert (listed["team"]["stored"], listed["filed"]["stored"]) == (True, False)
    changed = admin.ask("PATCH", f"{KEYS}/team", {"tokens_per_day": None, "requests_per_minute": 5}).json()
    assert (changed["tokens_per_day"], changed["requests_per_minute"]) == (None, 5)
    rotated = admin.post(f"{KEYS}/team/rotate", {}).json()
    assert rotated["key"] != secret
    assert admin.ask("DELETE", f"{KEYS}/team").json()["state"] == "revoked"
    assert admin.post(f"{KEYS}/team/delete", {}).status == 200
    assert admin.get(f"{KEYS}/team").status == 404


def test_what_a_key_used_stands_beside_its_budget(admin):
    secret = admin.post(KEYS, {"name": "team", "tokens_per_day": 100_000}).json()["key"]
    program = Visitor(admin._gateway)
    body = {"model": "demo", "messages": [{"role": "user", "content": "hello"}]}
    assert program.post("/v1/chat/completions", body, authorization=f"Bearer {secret}").status == 200
    admin.get("/inspector/api/dashboard")  # has the ledger written
    team = next(key for key in admin.get(KEYS).json()["data"] if key["name"] == "team")
    assert team["used"]["tokens_per_day"] == team["used"]["tokens_per_month"] > 0


@pytest.mark.parametrize(
    ("document", "status"),
    [({}, 400), ({"name": 5}, 400), ({"name": "admin"}, 400), ({"name": "filed"}, 409), ({"name": "x", "colour": 1}, 400),
     ({"name": "x", "tokens_per_day": -1}, 400), ({"name": "<script>"}, 400), ({"name": "x", "expires": "2001-01-01"}, 400)],
)  # fmt: skip
def test_a_bad_key_is_refused(admin, document, status):
    assert admin.post(KEYS, document).status == status


def test_where_everybody_may_look_keys_still_need_the_admin(fresh):
    for method, path in (("GET", KEYS), ("POST", KEYS), ("PATCH", f"{KEYS}/x"), ("DELETE", f"{KEYS}/x")):
        assert fresh.ask(method, path, None if method == "GET" else {"name": "x"}).status == 403


def test_the_first_key_names_the_clients_that_it_locks_out():
    with configured(f'admin_secret = "{ADMIN}"') as gateway:
        body = {"model": "demo", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
        caller = Visitor(gateway)
        for agent in ("claude-cli/2.1.0 (external, cli)", "my-script/1"):
            assert caller.ask("POST", "/v1/messages", body, user_agent=agent).status == 200
        visitor = Visitor(gateway).browse()
        visitor.sign_in(ADMIN)
        wait_until(lambda: len(visitor.get(KEYS).json()["keyless"]) == 2, "both exchanges are rows")
        listed = visitor.get(KEYS).json()
        assert (listed["required"], listed["data"]) == (False, [])
        assert {each["client"] for each in listed["keyless"]} == {"claude-code", "my-script"}
        assert all(each["requests"] == 1 and each["last"] > 0 for each in listed["keyless"])
        assert visitor.post(KEYS, {"name": "first"}).status == 201
        listed = visitor.get(KEYS).json()
        assert (listed["required"], listed["keyless"]) == (True, [])
        assert caller.ask("POST", "/v1/messages", body).status == 401
