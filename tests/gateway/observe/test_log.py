"""One line a request, which no one outside can forge, colour or overfill."""

import json
import os
import re

import pytest

from tests.tiers import rows
from wireglot.gateway.observe.log import MAX_LOSSES, JsonLines, PrettyLines, wants_colour
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.http.redaction import Redactor
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Usage

NOON = 1_767_268_800.25
SECRET = "Zq7rT0pL9vXw3KfJm2Hd8Bn5Cs1Gy6Ea"
EVIL = 'a\x1b[31mred\x1b[0m\r\n{"event":"forged"}\x00\x7f\x9b2J\u202eabc\u2028\u2066\u200b'


def clock() -> float:
    return NOON


def record(**fields) -> ExchangeRecord:
    usual = {
        "id": "req_1", "started": 100.0, "finished": 101.5, "first_byte": 100.25, "dialect": "anthropic",
        "operation": "generate", "caller": "team-a", "model": "claude-sonnet-4-5", "stream": True,
        "provider": "kimi", "upstream_model": "kimi-k3", "attempts": 1, "status": 200, "stop": "tool_calls",
        "usage": Usage(input=10, cache_read=5, cache_write=3, cache_write_long=4, output=20, reasoning=7, tool_prompt=1),
        "usage_source": "provider",
    }  # fmt: skip
    return ExchangeRecord(**{**usual, **fields})


def line(lines, made: ExchangeRecord) -> dict:
    reported = lines.request(made)
    assert reported.endswith(b"\n")
    assert reported.count(b"\n") == 1
    return dict(json.loads(reported))


def test_a_request_is_one_json_line():
    """C33"""
    assert line(JsonLines(Redactor(), clock), record(losses=[_loss("thinking.budget"), _loss("cache_marker"), _loss("thinking.budget")])) == {
        "ts": "2026-01-01T12:00:00.250Z", "level": "info", "event": "request", "id": "req_1", "key": "team-a",
        "dialect": "anthropic", "operation": "generate", "model": "claude-sonnet-4-5", "route": "kimi/kimi-k3",
        "stream": True, "status": 200, "outcome": "ok", "stop": "tool_calls",
        "tokens": {"input": 11, "output": 20, "cache_read": 5, "cache_write": 7, "reasoning": 7},
        "ms": 1500.0, "first_byte_ms": 250.0, "attempts": 1, "losses": ["thinking.budget", "cache_marker"],
        "loss_details": [{**_loss("thinking.budget").as_dict(), "count": 2}, _loss("cache_marker").as_dict()],
    }  # fmt: skip


@rows("uptime", [0.0, 0.3, 1_234.567, 86_400.1, 3_000_000.9, 400_000_000.7])
def test_a_duration_does_not_depend_on_how_long_the_machine_has_been_up(uptime):
    lines = JsonLines(Redactor(), clock)
    for tenths in range(1, 300):
        passed = uptime + tenths / 10_000
        reported = line(lines, record(started=uptime, first_byte=passed, finished=passed))
        assert (reported["ms"], reported["first_byte_ms"]) == (tenths / 10, tenths / 10)


def test_a_point_in_time_is_not_reported_before_it_has_come():
    reported = line(JsonLines(Redactor(), lambda: NOON + 0.7499), record())
    assert reported["ts"] == "2026-01-01T12:00:00.999Z"


def _loss(feature) -> Loss:
    return Loss("$", feature, "dropped")


def test_what_lines_have_in_common_is_taken_from_none_that_differs():
    """One after the other, each differing from the first in one thing: as if each were the first."""
    others = {
        "id": "req_2", "caller": "b", "dialect": "gemini", "operation": "count", "model": "other", "provider": "x",
        "upstream_model": "y", "stream": False, "status": 201, "outcome": "client_abort", "stop": "length",
        "attempts": 7, "usage": None, "usage_source": "partial", "first_byte": None, "losses": [_loss("cache_marker")],
    }  # fmt: skip
    made = [record(), *(record(**{name: value}) for name, value in others.items()), record()]
    lines = JsonLines(Redactor(), clock)
    reported = [lines.request(each) for each in made]
    assert reported == [JsonLines(Redactor(), clock).request(each) for each in made]
    assert len(set(reported)) == len(made) - 1
    assert lines.request(record(model="m" * 10_000)) == JsonLines(Redactor(), clock).request(
        record(model="m" * 10_000)
    )
    assert all(len(text) < 1_000 for key in lines._commons for text in map(str, key)), "no long name is held"


def test_a_failure_is_a_line_too_and_says_more():
    """C45"""
    made = record(
        status=503, outcome="error", stop="", usage=None, first_byte=None, attempts=3, fallbacks=["openai/gpt-5"],
        error_kind="overloaded", error_code="server_is_overloaded", error_message="try later", path="/v1/messages",
        agent="curl/8", account="ab12", upstream_request_id="up_9", notes=["breaker open"],
    )  # fmt: skip
    reported = line(JsonLines(Redactor(), clock), made)
    assert reported["level"] == "error"
    assert reported["error"] == {"kind": "overloaded", "code": "server_is_overloaded", "message": "try later"}
    assert reported["fallbacks"] == ["openai/gpt-5"]
    assert reported["notes"] == ["breaker open"]
    assert (reported["path"], reported["agent"], reported["account"], reported["upstream_id"]) == (
        "/v1/messages",
        "curl/8",
        "ab12",
        "up_9",
    )
    assert "tokens" not in reported
    assert "first_byte_ms" not in reported


def test_a_request_refused_before_it_was_routed_has_no_route():
    reported = line(
        JsonLines(Redactor(), clock),
        ExchangeRecord("req_2", 1.0, finished=1.0, status=404, outcome="error", path="/x"),
    )
    assert "route" not in reported
    assert "key" not in reported
    assert (reported["level"], reported["path"], reported["ms"]) == ("warn", "/x", 0.0)


@rows(
    ("status", "outcome", "level"),
    [
        (200, "ok", "info"),
        (400, "error", "warn"),
        (500, "error", "error"),
        (200, "client_abort", "warn"),
        (200, "error", "error"),
        (200, "gateway_abort", "error"),
    ],
)
def test_the_level_follows_the_ending(status, outcome, level):
    assert line(JsonLines(Redactor(), clock), record(status=status, outcome=outcome))["level"] == level


def test_estimated_tokens_say_so():
    assert (
        line(JsonLines(Redactor(), clock), record(usage_source="estimated"))["tokens_source"] == "estimated"
    )


TEXT_FIELDS = ("caller", "model", "provider", "upstream_model", "stop", "path", "agent", "account",
               "error_message", "error_code", "upstream_request_id")  # fmt: skip
LISTS = ("fallbacks", "notes")
STYLES = {"json": JsonLines, "pretty": PrettyLines}


def everywhere(text: str) -> ExchangeRecord:
    fields: dict = dict.fromkeys(TEXT_FIELDS, text) | {name: [text] for name in LISTS}
    return record(**fields, status=500, outcome="error", error_kind="server")


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_no_one_forges_a_line_or_drives_the_terminal(style):
    lines = style(Redactor(), clock)
    for reported in (
        lines.request(everywhere(EVIL)),
        lines.note("warn", "reload", {"why": EVIL, "all": [EVIL, {EVIL: EVIL}]}),
    ):
        text = reported.decode()
        assert text.endswith("\n")
        assert text[:-1].isprintable()
        assert "\\x1b" in text


def test_an_escape_stays_one_after_the_json_is_read():
    reported = line(JsonLines(Redactor(), clock), record(model=EVIL))
    assert reported["model"].isprintable()


@rows("style", STYLES.values(), ids=STYLES)
@rows("field", [*TEXT_FIELDS, *LISTS])
@rows("status", [200, 500])
def test_a_secret_in_any_field_is_scrubbed(style, field, status):
    """R-DE-18"""
    value = f"x {SECRET} y"
    made = record(
        **{field: [value] if field in LISTS else value},
        status=status,
        outcome="ok" if status == 200 else "error",
    )
    reported = style(Redactor([SECRET]), clock).request(made)
    assert SECRET[:12].encode() not in reported


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_a_secret_in_a_note_is_scrubbed(style):
    reported = style(Redactor([SECRET]), clock).note(
        "error", "config", {"path": SECRET, SECRET: 1, "deep": {"list": [SECRET]}, "odd": ValueError(SECRET)}
    )
    assert SECRET[:12].encode() not in reported


@pytest.mark.parametrize(("field", "limit"), [("model", 128), ("path", 512), ("agent", 256)])
def test_long_fields_are_cut(field, limit):
    reported = line(
        JsonLines(Redactor(), clock), record(**{field: "m" * 10_000_000}, status=400, outcome="error")
    )
    assert len(reported[field]) == limit
    assert reported[field].endswith("…")


def test_a_name_remembered_under_one_limit_is_cut_under_another():
    name = "n" * 200
    reported = line(JsonLines(Redactor(), clock), record(caller=name, model=name))
    assert (len(reported["key"]), len(reported["model"])) == (200, 128)


def test_a_secret_across_the_cut_is_scrubbed():
    reported = JsonLines(Redactor([SECRET]), clock).request(record(model="m" * 120 + SECRET))
    assert SECRET[:8].encode() not in reported


def test_half_a_character_does_not_break_a_line():
    assert line(JsonLines(Redactor(), clock), record(model="a\ud800b"))["model"]
    assert PrettyLines(Redactor(), clock).request(record(model="a\ud800b"))


def test_a_note_keeps_its_own_names_apart_from_those_of_the_line():
    reported = json.loads(
        JsonLines(Redactor(), clock).note(
            "info", "start", {"port": 8484, "level": "x", "tls": False, "none": None}
        )
    )
    assert reported == {
        "ts": "2026-01-01T12:00:00.250Z",
        "level": "info",
        "event": "start",
        "port": 8484,
        "level_": "x",
        "tls": False,
        "none": None,
    }


def test_pretty_tells_the_same_to_a_person():
    made = record(
        status=502,
        outcome="error",
        attempts=2,
        fallbacks=["a/b"],
        error_kind="server",
        error_message="bad gateway",
        losses=[_loss("tool.name")],
        notes=["slow"],
    )
    reported = PrettyLines(Redactor(), clock).request(made).decode()
    for part in (
        "502",
        "anthropic",
        "claude-sonnet-4-5 -> kimi/kimi-k3",
        "stream",
        "23 -> 27",
        "1500 ms",
        "first 250 ms",
        "key team-a",
        "tool_calls",
        "attempts 2",
        "after a/b",
        "losses tool.name",
        "server: bad gateway",
        "slow",
    ):
        assert part in reported


def test_pretty_lines_up():
    lines = PrettyLines(Redactor(), clock)
    first = lines.request(record()).decode()
    second = lines.request(
        record(model="gpt-5", dialect="openai-responses", provider="x", usage=None)
    ).decode()
    assert first.index("stream") == second.index("stream")
    assert first.index("1500 ms") == second.index("1500 ms")


def narrow(columns: int = 80) -> PrettyLines:
    return PrettyLines(Redactor(), clock, columns=lambda: columns)


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_line_fits_a_terminal_that_is_narrow(columns):
    """[M9] Lines of 140 columns made two of every request."""
    reported = narrow(columns).request(record(model="a-model-with-quite-a-long-name" * 3)).decode()
    (line,) = reported.splitlines()
    assert len(line) <= columns
    assert "…" in line
    for part in ("200", "23 -> 27", "1500 ms"):
        assert part in line


def test_what_went_wrong_has_a_line_of_its_own_in_a_narrow_terminal():
    made = record(status=502, outcome="error", error_kind="server", error_message="bad gateway")
    first, second = narrow().request(made).decode().splitlines()
    assert len(first) <= 80
    assert second.strip() == "server: bad gateway"


def test_many_losses_go_on_in_the_next_line_of_a_narrow_terminal():
    """[M9] A list without spaces was broken by the terminal, in the middle of a name."""
    names = [f"tool.schema_{number}" for number in range(12)]
    made = record(losses=[_loss(name) for name in names], notes=["slow"])
    lines = PrettyLines(Redactor(), clock, colour=True, columns=lambda: 80)
    reported = re.sub(r"\x1b\[\d+m", "", lines.request(made).decode())
    assert all(len(line) <= 80 for line in reported.splitlines())
    said = " ".join(line.strip() for line in reported.splitlines()[1:])
    assert said == f"losses {', '.join(names)} slow"


def test_what_is_reported_about_the_process_goes_on_in_the_next_line():
    reported = narrow().note("info", "note", {"text": "a sentence of a few words " * 6}).decode()
    assert len(reported.splitlines()) == 3
    assert all(len(line) <= 80 for line in reported.splitlines())
    assert "text=" not in reported


def test_colour_is_only_around_our_own_words():
    reported = PrettyLines(Redactor(), clock, colour=True).request(record(model=EVIL)).decode()
    assert "\x1b[32m200\x1b[0m" in reported
    assert re.sub(r"\x1b\[\d+m", "", reported)[:-1].isprintable()


def test_colour_needs_a_terminal_that_wants_it(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    main, other = os.openpty()
    try:
        assert wants_colour(other)
        monkeypatch.setenv("NO_COLOR", "1")
        assert not wants_colour(other)
        monkeypatch.delenv("NO_COLOR")
        monkeypatch.setenv("TERM", "dumb")
        assert not wants_colour(other)
    finally:
        os.close(main)
        os.close(other)
    read, write = os.pipe()
    monkeypatch.setenv("TERM", "xterm")
    assert not wants_colour(write)
    os.close(read)
    os.close(write)


def test_losses_are_reported_whole_the_worst_first_and_no_more_than_a_line_bears():
    """[X25]"""
    many = [Loss(f"$.m{n // 2}[{n % 2}]", "reasoning.text", "dropped") for n in range(80)]  # 40 of two each
    serious = Loss("$.tools[1]", "hosted_tool", "dropped", "web_search")
    reported = line(JsonLines(Redactor(), clock), record(losses=[*many, serious]))
    assert reported["losses"] == ["hosted_tool", "reasoning.text"]
    assert reported["loss_details"][0] == serious.as_dict()
    assert len(reported["loss_details"]) == MAX_LOSSES
    assert reported["loss_details"][1] == {**many[0].as_dict(), "path": "$.m0[*]", "count": 2}
    assert reported["losses_unreported"] == reported["losses_untold"] == 2 * (41 - MAX_LOSSES)


def test_a_loss_forges_nothing():
    """[X25] Its path is made of the client's own keys, its detail of its words."""
    secret = Redactor([SECRET])
    loss = Loss(f"$[{json.dumps(EVIL)}]{EVIL}", "unknown_field", "dropped", f"{SECRET} {EVIL}")
    text = JsonLines(secret, clock).request(record(losses=[loss])).decode()
    assert text.count("\n") == 1
    assert SECRET not in text
    assert not set(text) & set("\x1b\x00\x7f\x9b\u202e\u2028\u2066")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"flaws": ["usage.total", "stream.order"]}, "flaws usage.total, stream.order"),
        ({"outcome": "client_abort"}, "client abort"),
        ({"outcome": "gateway_abort"}, "gateway abort"),
        ({"attempts": 3}, "attempts 3"),
        ({"fallbacks": ["a/x", "b/y"]}, "after a/x, b/y"),
        ({"notes": ["one", "two"]}, "one"),
        (
            {"error_kind": "server", "error_message": "no", "error_fix": "look there"},
            "server: no [look there]",
        ),
    ],
)
def test_a_person_reads_what_happened_only_where_it_did(fields, said):
    lines = PrettyLines(Redactor(), clock, columns=lambda: 400)
    assert said in lines.request(record(**fields)).decode()
    assert said not in lines.request(record()).decode()


def test_names_stay_clean_however_many_there_are():
    lines = JsonLines(Redactor(["a-secret-0123456789"]), clock)
    for number in range(5000):
        lines.request(record(caller=f"caller-{number}"))
    assert line(lines, record(caller="caller-7"))["key"] == "caller-7"
    assert "a-secret" not in lines.request(record(caller="a-secret-0123456789")).decode()
