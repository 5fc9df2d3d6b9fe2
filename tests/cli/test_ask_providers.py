"""One cheap question to a provider of the catalog, and what its answer means."""

import asyncio
import contextlib
import errno
import os
import socket
import threading
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from tests.cli.provider_double import BAD_KEY, GOOD_KEY, ProviderDouble, Reply, set_apart
from tests.tiers import rows
from wireglot.cli.ask_providers import ask_providers
from wireglot.gateway import config
from wireglot.gateway.relay.key_checks import Outcome, ProviderAnswer, first_question
from wireglot.gateway.settings import Provider
from wireglot.http.transport import Timeouts, TransportProblem
from wireglot_core.providers import spec as catalog


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return set_apart(tmp_path, monkeypatch)


def provider(name: str, base_url: str, key: str = GOOD_KEY, **fields: Any) -> Provider:
    """An entry of the catalog at another address."""
    table = {"catalog": name, "base_url": base_url, "api_key": key, **fields}
    settings = config.load(None, overrides={"providers": {"it": table}}, create_secret=False)
    return settings.providers["it"]


def asked(given: Provider, double: ProviderDouble) -> ProviderAnswer:
    with double:
        (answered,) = ask_providers([given])
    return answered


KEYED = [
    name
    for name in catalog.names()
    if catalog.provider(name).auth != "none" and "{" not in catalog.provider(name).base_url
]


@pytest.mark.parametrize("name", KEYED)
@pytest.mark.parametrize(("key", "outcome"), [(GOOD_KEY, "taken"), (BAD_KEY, "refused")])
def test_every_provider_with_a_key_tells_a_good_one_from_a_bad_one(name: str, key: str, outcome: str) -> None:
    spec = catalog.provider(name)
    double = ProviderDouble({"host": Reply(open_list=bool(spec.key_check))})
    answered = asked(provider(name, double.base("host", ""), key, auth=spec.auth), double)
    assert answered.outcome == outcome, answered
    assert BAD_KEY not in answered.words
    assert answered.milliseconds >= 0
    assert answered.skew is not None


@rows(
    "date",
    ["yesterday", "1 Jan 99999999999999999999 00:00:00 GMT", f"Thu, 01 Jan 2026 00:00:00 +{'9' * 30}"],
)
def test_a_clock_that_says_no_time_is_none(date: str) -> None:
    double = ProviderDouble({"host": Reply()})
    with pytest.MonkeyPatch.context() as changing:
        changing.setattr(ProviderDouble.Handler, "date_time_string", lambda self, timestamp=None: date)
        answered = asked(provider("openai", double.base("host")), double)
    assert (answered.outcome, answered.skew) == ("taken", None)


@rows("outcome", get_args(Outcome))
@rows("problem", [None, *get_args(TransportProblem)])
def test_nothing_answers_where_no_connection_is_made(outcome: Any, problem: Any) -> None:
    """What takes too long may answer yet, and whatever is heard is an answer."""
    answer = ProviderAnswer("p", "GET https://h/models", outcome, problem=problem)
    unmade = problem in ("dns", "connect", "tls", "protocol")
    assert answer.is_unreached is (outcome == "silent" and unmade)


@pytest.mark.parametrize("name", ["bedrock", "azure-deployments", "vertex-anthropic"])
def test_a_host_without_a_list_is_asked_nothing_that_costs_tokens(name: str) -> None:
    double = ProviderDouble({"host": Reply(no_list=True)})
    variables = dict.fromkeys(("region", "resource", "api_version", "project"), "x")
    wanted = {each: "x" for each in variables if each in str(catalog.provider(name).forms)}
    fields: dict[str, Any] = {"variables": wanted} if wanted else {}
    given = provider(name, double.base("host", ""), **fields)
    assert asked(given, double).outcome == "taken"
    assert double.requests[-1].startswith("POST host /")


def test_gemini_says_400_to_a_wrong_key() -> None:
    words = "API key not valid. Please pass a valid API key."
    body = {
        "error": {
            "code": 400,
            "message": words,
            "status": "INVALID_ARGUMENT",
            "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}],
        }
    }
    double = ProviderDouble({"host": Reply(status=400, body=body, wants_key=False)})
    answered = asked(provider("gemini", double.base("host", "/v1beta")), double)
    assert (answered.outcome, answered.words) == ("refused", words)


def test_xai_says_400_to_a_wrong_key_too() -> None:
    body = {
        "code": "Client specified an invalid argument",
        "error": "Incorrect API key provided: sk***ef. You can obtain an API key from https://console.x.ai.",
    }
    double = ProviderDouble({"host": Reply(status=400, body=body, wants_key=False)})
    answered = asked(provider("xai", double.base("host")), double)
    assert answered.outcome == "refused"
    assert answered.words.startswith("Incorrect API key provided: [redacted]")


@pytest.mark.parametrize("name", ["kimi-coding", "anthropic"])
def test_a_host_that_admits_only_clients_it_knows_has_not_refused_the_key(name: str) -> None:
    body = {
        "error": {"message": "only for Coding Agents such as Kimi CLI", "type": "access_terminated_error"}
    }
    double = ProviderDouble({"host": Reply(status=403, body=body, wants_key=False)})
    answered = asked(provider(name, double.base("host", ""), auth="bearer"), double)
    assert (answered.outcome, answered.words) == ("forbidden", "only for Coding Agents such as Kimi CLI")


@rows(
    ("status", "kind", "outcome"),
    [
        (401, "", "refused"),
        (402, "", "unpaid"),
        (403, "", "forbidden"),
        (429, "", "busy"),
        (418, "", "other"),
        (500, "", "failing"),
        (499, "", "other"),
        # The status says less than the error does.
        (400, "authentication_error", "refused"),
        (400, "permission_error", "forbidden"),
        (400, "billing_error", "unpaid"),
        (400, "rate_limit_error", "busy"),
        (400, "overloaded_error", "busy"),
        (500, "api_error", "failing"),
        (400, "timeout_error", "failing"),
        (400, "invalid_request_error", "other"),
        # What these statuses mean is the same whatever the words beside them are.
        (402, "invalid_request_error", "unpaid"),
        (403, "api_error", "forbidden"),
        (429, "permission_error", "busy"),
    ],
)
def test_a_refusal_is_what_its_status_or_its_error_says(status: int, kind: str, outcome: str) -> None:
    words = f"words beside {status}"
    body: Any = {"type": "error", "error": {"type": kind, "message": words}} if kind else b"<html>"
    double = ProviderDouble({"host": Reply(status=status, body=body, wants_key=False)})
    answered = asked(provider("anthropic", double.base("host", "")), double)
    assert (answered.outcome, answered.status) == (outcome, status)
    assert answered.words == (words if kind else f"status {status}")
    assert not answered.is_on


@rows(
    ("number", "words"),
    [
        (errno.ECONNREFUSED, "connection refused"),
        (errno.ENETUNREACH, "network is unreachable"),
        (errno.EHOSTUNREACH, "host is unreachable"),
        (errno.ECONNRESET, "was reset"),
    ],
)
def test_what_the_system_says_of_a_connection_is_told(
    number: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise OSError(number, "in the system's own words")

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", refuse)
    monkeypatch.setattr(asyncio.BaseEventLoop, "sock_connect", refuse, raising=False)
    monkeypatch.setattr("asyncio.selector_events.BaseSelectorEventLoop.sock_connect", refuse)
    (answered,) = ask_providers([provider("openai", "http://127.0.0.1:9/v1")])
    assert answered.outcome == "silent"
    assert words in answered.words


def test_a_login_that_fails_is_told_with_its_fix() -> None:
    login = {
        "kind": "entra",
        "tenant": "t",
        "client": "c",
        "secret": "hush-hush-hush",
        "authority": "http://127.0.0.1:9",
    }
    table = {"catalog": "azure", "base_url": "http://127.0.0.1:9/openai/v1", "login": login}
    settings = config.load(None, overrides={"providers": {"it": table}}, create_secret=False)
    (answered,) = ask_providers(settings.providers.values())
    assert answered.outcome == "no-login"
    assert answered.fix
    assert "hush" not in answered.words + answered.fix


def test_a_host_that_says_nothing_is_not_waited_for_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        given = provider("openai", f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
        (answered,) = ask_providers([given], timeouts=Timeouts(first_byte=0.05, total=0.1))
    assert answered.outcome == "silent"
    assert answered.problem in ("first_byte_timeout", "total_timeout")


def test_what_is_no_http_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                client, _ = listener.accept()
                client.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
                client.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        given = provider("openai", f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
        (answered,) = ask_providers([given])
        thread.join()
    assert answered.outcome == "silent"
    assert answered.words


def test_the_demo_is_not_asked_and_several_are_asked_in_their_order() -> None:
    with ProviderDouble({"host": Reply()}) as double:
        first = provider("openai", double.base("host"))
        others = [msgspec.structs.replace(first, name=name) for name in ("b", "a")]
        demo = config.load(None, create_secret=False).providers["demo"]
        assert [each.provider for each in ask_providers([demo, first, *others])] == ["it", "b", "a"]


def test_what_will_be_asked_can_be_shown_without_a_key() -> None:
    given = provider("anthropic", "http://127.0.0.1:9")
    assert first_question(given) == "GET http://127.0.0.1:9/v1/models"
    assert os.environ.get("ANTHROPIC_API_KEY") is None
