"""Losses in headers: short for everybody, whole for who asks, and never more than fits."""

import json

from tests.gateway import kit
from tests.tiers import rows
from wireglot.gateway.request.headers import DETAILS_BYTES, NAMES_BYTES, loss_headers
from wireglot_core.ir.loss import FEATURES, Loss

USER = Loss("$.user", "user", "dropped", "end users are not named")
SEED = Loss("$.seed", "sampling.seed", "dropped", "no such parameter")
TOOL = Loss("$.tools[1]", "hosted_tool", "dropped", "no counterpart")


def headers_of(*losses: Loss, details: bool = False) -> dict[str, str]:
    return dict(loss_headers(losses, details=details))


def test_names_come_once_and_the_serious_ones_first():
    """[X25] In the form they always had."""
    assert headers_of(USER, SEED, TOOL, SEED) == {"x-wireglot-losses": "hosted_tool,sampling.seed,user"}


def test_a_header_of_names_is_cut_where_it_is_too_long_and_says_so():
    """[X25]"""
    text = headers_of(*(Loss("$", feature, "dropped") for feature in FEATURES))["x-wireglot-losses"]
    *names, cut = text.split(",")
    assert len(text) <= NAMES_BYTES
    assert set(names) < set(FEATURES)
    assert int(cut.removeprefix("+")) == len(FEATURES) - len(names)


def test_details_are_json_with_everything_a_loss_has():
    """[X25]"""
    reported = json.loads(headers_of(USER, TOOL, details=True)["x-wireglot-loss-details"])
    assert reported == [TOOL.as_dict(), USER.as_dict()]


def test_details_are_cut_at_four_kibibytes_and_say_so():
    """[X25]"""
    losses = [Loss(f"$.m{n // 2}[{n % 2}]", "reasoning.text", "dropped", "x" * 400) for n in range(198)]
    text = headers_of(*losses, details=True)["x-wireglot-loss-details"]
    *reported, cut = json.loads(text)
    assert len(text) <= DETAILS_BYTES
    assert len(reported) > 5
    assert {loss["count"] for loss in reported} == {2}
    assert cut == {"untold": 2 * (99 - len(reported))}
    assert all(len(loss["detail"]) == 200 and loss["detail"].endswith("…") for loss in reported)


@rows("text", ["é", "日本", "😀", "\x7f", "\r\nx-evil: 1", "\u2028", "\ud800"])
def test_details_are_ascii_whatever_a_key_is_called(text):
    """[X25] A header takes nothing else, and none may be forged."""
    value = headers_of(Loss(f'$["{text}"]', "unknown_field", "dropped", text), details=True)[
        "x-wireglot-loss-details"
    ]
    assert value.isascii()
    assert value.isprintable()
    (reported,) = json.loads(value)
    assert reported["detail"] in (text, "\ufffd")


@rows(("asked", "has"), [("1", True), ("true", True), ("0", False), ("", False), (None, False)])
def test_details_are_for_who_asks(asked, has):
    """[X25] By the header of the same name."""
    wish = {} if asked is None else {"x-wireglot-loss-details": asked}
    exchange = kit.exchange(kit.settings(), {"model": "m", "messages": []}, **wish)
    exchange.attempt.losses = (SEED,)
    headers = dict(exchange.headers())
    assert headers["x-wireglot-losses"] == "sampling.seed"
    assert ("x-wireglot-loss-details" in headers) is has


def test_a_page_in_a_browser_may_read_them():
    """[X25] Without a word from us a browser shows its page none of our headers."""
    server = kit.settings().server
    origin = "https://app.example"
    now = kit.settings(server=type(server)(origins=(origin,)))
    exchange = kit.exchange(now, {"model": "m", "messages": []}, origin=origin)
    headers = dict(exchange.headers())
    assert (headers["access-control-allow-origin"], headers["vary"]) == (origin, "origin")
    exposed = headers["access-control-expose-headers"].split(", ")
    assert {"x-wireglot-losses", "x-wireglot-loss-details", "x-wireglot-request-id"} <= set(exposed)
