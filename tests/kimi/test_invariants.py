"""The twenty invariants of the adapter contract, one test each; what a correction changed is said there."""

import asyncio
import copy
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireglot
from tests.kimi.kit import KEY, TOOL, Http, Lines, Sleeps, ask, ask_with_tools, call, error, message, quiet
from wireglot import kimi


def test_I1_the_result_has_the_shape_of_every_adapter():
    """R-P-01, R-O-13: the contract's six fields first; ours stand behind them."""
    result = ask(Http())
    assert kimi.CompletionResult.__struct_fields__ == (
        "content", "model", "prompt_tokens", "completion_tokens", "latency_ms", "stop_reason",
        "blocks", "text", "reasoning", "raw", "losses",
    )  # fmt: skip
    assert (result.content, result.model, result.stop_reason) == ("Hello.", "kimi-k3", "end_turn")
    assert (result.prompt_tokens, result.completion_tokens) == (7, 5)
    assert type(result.latency_ms) is int
    assert result.latency_ms >= 0
    with pytest.raises(AttributeError):
        result.content = "other"  # type: ignore[misc]  # that is what is tested


def test_I2_importing_needs_no_environment_and_a_missing_key_shows_at_the_call():
    """R-P-02, R-R-01, R-R-09: nor does importing load network code."""
    script = (
        "import sys, wireglot.kimi as kimi\n"
        "print(sorted({'asyncio', 'socket', 'ssl', 'httptools', 'certifi'} & set(sys.modules)))\n"
        "try: kimi.complete_sync('Hi')\n"
        "except kimi.KimiConfigError as problem: print(problem.code)\n"
        "try: kimi.stream_sync('Hi')\n"
        "except kimi.KimiConfigError as problem: print(problem.code)\n"
    )
    bare = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    reported = subprocess.run(
        [sys.executable, "-c", script], env=bare, capture_output=True, text=True, check=True
    )
    assert reported.stdout.split() == ["[]", "KIMI_CONFIG_ERROR", "KIMI_CONFIG_ERROR"]


def test_I3_the_key_is_the_option_then_the_environment(monkeypatch):
    """R-P-03, R-O-09, R-R-11, R-R-12: the contract's name first, then Moonshot's, then Kimi's."""

    def sent(**options):
        http = Http()
        asyncio.run(kimi.complete("Hi", transport=http, log=Lines(), **options))
        return http.headers["authorization"].removeprefix("Bearer ")

    for name in ("KIMI_API_KEY", "MOONSHOT_API_KEY", "COLIBRI_KIMI_API_KEY"):  # each beats the one before
        monkeypatch.setenv(name, f"of-{name}\n")
        assert sent() == f"of-{name}"
    assert sent(api_key="of-the-call") == "of-the-call"
    monkeypatch.setenv("COLIBRI_KIMI_API_KEY", "")
    assert sent(api_key="") == "of-MOONSHOT_API_KEY"


def test_I4_the_base_url_is_the_option_then_the_environment_then_moonshot(monkeypatch):
    """R-P-04, R-O-10, R-R-10: an empty string counts as unset, wherever it stands."""

    def asked(**options):
        http = Http()
        ask(http, **options)
        return http.url

    official = "https://api.moonshot.ai/v1/chat/completions"
    assert asked() == official
    monkeypatch.setenv("COLIBRI_KIMI_BASE_URL", "")
    assert asked(base_url="") == official
    monkeypatch.setenv("COLIBRI_KIMI_BASE_URL", "https://api.moonshot.cn/v1/")
    assert asked() == "https://api.moonshot.cn/v1/chat/completions"
    assert (
        asked(base_url="https://api.kimi.com/coding/v1") == "https://api.kimi.com/coding/v1/chat/completions"
    )


def test_I5_the_default_model_comes_from_the_catalog():
    """R-P-05, R-O-03: the contract's own default is retired (C14)."""
    http = Http()
    ask(http)
    assert http.body["model"] == kimi.default_model() == "kimi-k3"
    ask(http, model="kimi-k2.6")
    assert http.body["model"] == "kimi-k2.6"


def test_I6_no_limit_is_sent_unless_one_is_given():
    """R-P-06, R-O-04: the contract's 1024 would starve a model that thinks (C15)."""
    http = Http()
    ask(http)
    assert not {"max_tokens", "max_completion_tokens"} & http.body.keys()
    ask(http, max_tokens=1024)
    assert http.body["max_completion_tokens"] == 1024
    assert "max_tokens" not in http.body


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529, 599])
def test_I7_429_and_5xx_are_tried_three_times_more(status):
    """R-P-07, R-R-13, R-R-14: attempts at 0, 100, 200 and 400 ms, by default and exactly."""
    http, sleeps = Http((status, error("server_error")), message()), Sleeps()
    assert ask(http, sleep=sleeps).text == "Hello."
    assert sleeps == [0.1]
    http, sleeps = Http((status, error("server_error"))), Sleeps()
    with pytest.raises(kimi.KimiApiError) as caught:
        ask(http, sleep=sleeps)
    assert (sleeps, len(http.requests)) == ([0.1, 0.2, 0.4], 4)
    assert (caught.value.code, caught.value.status) == ("KIMI_RETRIES_EXHAUSTED", status)


@pytest.mark.parametrize("problem", [ConnectionRefusedError("no"), TimeoutError(), RuntimeError("odd")])
def test_I8_a_network_error_is_wrapped_and_not_tried_again(problem):
    """R-P-08, R-R-15: `status` is None (C44)."""
    http, sleeps = Http(problem), Sleeps()
    with pytest.raises(kimi.KimiApiError) as caught:
        ask(http, sleep=sleeps)
    assert (caught.value.code, caught.value.status, caught.value.kind) == ("KIMI_API_ERROR", None, "network")
    assert caught.value.__cause__ is problem
    assert (len(http.requests), sleeps) == (1, [])


def test_I9_one_line_goes_to_stderr_and_nothing_to_stdout(capsys):
    """R-P-09, R-R-19: exactly this line."""
    result = asyncio.run(kimi.complete("Hi", api_key=KEY, transport=Http()))
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"[kimi] model=kimi-k3 prompt_tokens=7 completion_tokens=5 latency_ms={result.latency_ms}\n"


def test_I10_no_tools_means_no_tools_key():
    """R-P-10: nor a tool_choice (C18)."""
    http = Http()
    ask_with_tools(http, [], fields={"tool_choice": {"type": "any"}})
    assert not {"tools", "tool_choice"} & http.body.keys()


def test_I11_tool_calls_come_back_as_serialised_blocks():
    """R-P-11, R-Q-07: and as real ones in `blocks` (C19)."""
    result = ask_with_tools(Http(message(None, [call()])), [TOOL])
    block = {
        "type": "tool_use",
        "id": "functions.get_weather:0",
        "name": "get_weather",
        "input": {"city": "Rome"},
    }
    assert json.loads(result.content) == result.blocks == [block]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.text() | _JSON.map(json.dumps))
def test_I12_arguments_that_do_not_parse_never_raise(arguments):
    """R-P-12, R-Q-03, R-Q-04: what is no JSON object comes back with the reason and the raw text (C10)."""
    arguments = arguments.encode("utf-8", "replace").decode()
    result = ask_with_tools(Http(message(None, [call(arguments=arguments)])), [TOOL])
    (block,) = json.loads(result.content)
    assert [block] == result.blocks
    try:
        meant = json.loads(arguments)
    except ValueError:
        meant = arguments
    if type(meant) is dict:
        assert block["input"] == meant
    elif meant is None or not arguments.strip():
        assert block["input"] == {}
    else:
        assert block["input"]["_parse_error"]
        assert block["input"]["_raw"] == arguments


@pytest.mark.parametrize(
    ("finish", "calls", "reason"),
    [
        ("stop", None, "end_turn"),
        ("tool_calls", [call()], "tool_use"),
        ("length", None, "max_tokens"),
        ("content_filter", None, "refusal"),
        ("something_new", None, "something_new"),
    ],
)
def test_I13_finish_reasons_follow_the_table(finish, calls, reason):
    """R-P-13, R-I-07, R-I-08, R-I-09, R-I-10, R-I-11."""
    assert ask_with_tools(Http(message("x", calls, finish)), [TOOL]).stop_reason == reason


def test_I14_network_log_and_clock_can_be_replaced():
    """R-P-14, R-O-06, R-O-07, R-O-08, R-R-20: all three at once, and nothing else is touched."""
    http, lines, sleeps = Http((500, error("server_error")), message()), Lines(), Sleeps()
    asyncio.run(kimi.complete("Hi", api_key=KEY, transport=http, log=lines, sleep=sleeps))
    assert (len(http.requests), len(lines), sleeps) == (2, 1, [0.1])


def test_I15_the_package_does_not_export_it_at_its_top():
    """R-P-15: a rule of the contract's own project; here it means that `import wireglot` stays light."""
    assert not set(kimi.__all__) & set(wireglot.__all__)
    script = "import sys, wireglot; print('wireglot.kimi.client' in sys.modules)"
    reported = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert reported.stdout.strip() == "False"


def test_I16_it_is_a_library_and_runs_no_tools():
    """R-P-16: a call for a tool is handed back, and that is all that happens."""
    http = Http(message(None, [call()]), message("never asked for"))
    assert ask_with_tools(http, [TOOL]).stop_reason == "tool_use"
    assert len(http.requests) == 1


def test_I17_the_key_travels_as_bearer():
    """R-P-17: never as x-api-key on this form of the API (C35)."""
    http = Http()
    ask(http)
    assert http.headers["authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in http.headers
    assert http.headers["content-type"] == http.headers["accept"] == "application/json"
    assert http.headers["user-agent"] == "wireglot"


def test_I18_the_system_prompt_is_the_first_message():
    """R-P-18, R-O-05."""
    http = Http()
    ask(http, system="Be brief.")
    assert http.body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
    ]
    ask(http, system="")
    assert [turn["role"] for turn in http.body["messages"]] == ["user"]


def test_I19_tools_become_functions():
    """R-P-19, R-Q-01: a schema that Kimi takes passes unchanged."""
    http = Http()
    ask_with_tools(http, [TOOL])
    assert http.body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": TOOL["name"],
                "description": TOOL["description"],
                "parameters": TOOL["input_schema"],
            },
        }
    ]


def test_I20_nothing_of_the_callers_is_changed():
    """R-P-20: tools, messages, fields and system, nested values too."""
    loose = {"name": "pick", "input_schema": {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}}}
    given = {
        "tools": [TOOL, loose],
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}],
            },
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "a b", "name": "pick", "input": {"a": "x"}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a b", "content": "done"}]},
        ],
        "system": [{"type": "text", "text": "Be brief."}],
        "fields": {"tool_choice": {"type": "tool", "name": "pick"}, "stop_sequences": ["END"]},
    }
    before = copy.deepcopy(given)
    http = Http()
    result = asyncio.run(kimi.complete_with_tools(None, **quiet(http, given)))
    assert given == before
    result.blocks[0]["text"] = "changed"
    assert result.text == "Hello."
