"""Secrets are found by value in every spelling, and by looks where they were never loaded."""

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.tiers import rows
from wireglot.http.redaction import _PLACEHOLDERS, MASK, PIECE_BYTES, Redactor

# Of no known kind, so that only their values can give them away.
PLAIN = "Zq7rT0pL9vXw3KfJm2Hd8Bn5Cs1Gy6Ea"
ODD = 'p@ss/w+rd&"q" \\<é>%=ß~tail-of-it-42'

FORMS = {
    "as it is": lambda s: ("", s, ""),
    "in a sentence": lambda s: ("Incorrect API key provided: ", s, ". Find your key at"),
    "in quotes": lambda s: ('"', s, '"'),
    "inside a word": lambda s: ("abc", s, "def"),
    "twice": lambda s: ("", s + s, ""),
    "base64": lambda s: ("", base64.b64encode(s.encode()).decode(), ""),
    "base64 without padding": lambda s: ("", base64.b64encode(s.encode()).decode().rstrip("="), ""),
    "base64 for URLs": lambda s: ("", base64.urlsafe_b64encode(s.encode()).decode(), ""),
    "basic, user of none": lambda s: ("Basic ", base64.b64encode(f":{s}".encode()).decode(), ""),
    "basic, user of one": lambda s: ("Basic ", base64.b64encode(f"a:{s}".encode()).decode(), ""),
    "basic, user of two": lambda s: ("Basic ", base64.b64encode(f"ab:{s}".encode()).decode(), ""),
    "base64 of more": lambda s: ("", base64.b64encode(f"{s}:{s}.".encode()).decode(), ""),
    "quoted": lambda s: ("", quote(s, safe=""), ""),
    "quoted but slashes": lambda s: ("", quote(s), ""),
    "quoted plus": lambda s: ("", quote_plus(s), ""),
    "quoted twice": lambda s: ("", quote(quote(s, safe=""), safe=""), ""),
    "query": lambda s: ("https://example.com/v1?x=1&k=", quote(s, safe=""), ""),
    "json": lambda s: ('{"detail": "', json.dumps(s)[1:-1], '"}'),
    "json, not ascii": lambda s: ('{"detail": "', json.dumps(s, ensure_ascii=False)[1:-1], '"}'),
    "html": lambda s: ("<p>", html.escape(s), "</p>"),
    "hex": lambda s: ("", s.encode().hex(), ""),
    "HEX": lambda s: ("", s.encode().hex().upper(), ""),
    "python repr": lambda s: ("{'k': '", repr(s)[1:-1], "'}"),
}
"""What stands before it, the secret as it is spelled there, what stands after it."""


@rows("secret", [PLAIN, ODD])
@rows("form", FORMS.values(), ids=FORMS)
def test_a_secret_is_scrubbed_in_every_spelling(form, secret):
    before, spelled, after = form(secret)
    clean = Redactor([secret]).text(before + spelled + after)
    assert clean.startswith(before)
    assert clean.endswith(after)
    assert [
        at for at in range(len(spelled) - PIECE_BYTES + 1) if spelled[at : at + PIECE_BYTES] in clean
    ] == []


@rows(("start", "length"), [(0, 12), (3, 12), (7, 15), (20, 12), (0, 31)])
def test_a_piece_of_twelve_characters_or_more_is_scrubbed(start, length):
    assert Redactor([PLAIN]).text(f"key ...{PLAIN[start : start + length]}... refused") == (
        "key ...[redacted]... refused"
    )


def test_a_shorter_piece_stays():
    assert Redactor([PLAIN]).text(f"ends in {PLAIN[-4:]}") == f"ends in {PLAIN[-4:]}"


@given(
    st.text("ab0-", min_size=12, max_size=40),
    st.lists(st.text("ab0-", max_size=30), min_size=2, max_size=4),
    st.integers(0, 30),
    st.integers(12, 40),
)
def test_no_piece_of_a_secret_survives(secret, around, start, length):
    piece = secret[min(start, len(secret) - 12) :][:length]
    clean = Redactor([secret]).text((piece).join(around))
    assert not any(secret[at : at + PIECE_BYTES] in clean for at in range(len(secret) - PIECE_BYTES + 1))


@given(
    st.text(min_size=6, max_size=60).filter(lambda s: s.strip() == s and not s.startswith("{")),
    st.text(),
    st.text(),
)
@example("UNUSED", "", "")
def test_no_whole_secret_survives_whatever_stands_around_it(secret, before, after):
    """R-DE-18"""
    is_short = len(secret.encode("utf-8", "replace")) < 6
    if secret in MASK.decode() or is_short or secret.lower() in _PLACEHOLDERS:
        return
    assert secret not in Redactor([secret]).text(before + secret + after).replace(MASK.decode(), "\0")


@given(st.binary(max_size=2000))
def test_bytes_without_a_secret_come_back_as_they_are(data):
    redactor = Redactor([PLAIN, ODD])
    assert redactor.values(data) is data


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_a_secret_is_found_at_every_offset(before, after):
    assert Redactor([PLAIN]).data(b"." * before + PLAIN.encode() + b"." * after) == (
        b"." * before + MASK + b"." * after
    )


def test_the_shortest_piece_is_found_at_the_end_of_a_text_of_any_length():
    redactor = Redactor([PLAIN])
    for before in range(1000):
        clean = redactor.data(b"." * before + PLAIN[:PIECE_BYTES].encode())
        assert clean == b"." * before + MASK, before


def test_a_redactor_that_knows_more_knows_what_it_knew():
    more = Redactor([PLAIN, "six-ch"]).knowing([ODD, "seven-c"])
    assert more.text(f"{PLAIN}|{ODD}|six-ch|seven-c") == "|".join(["[redacted]"] * 4)
    assert Redactor(["abcdef"]).knowing(["abcdefg"]).text("abcdefg") == "[redacted]"


def test_many_secrets_are_distinguished():
    secrets = [f"{number:02d}-{PLAIN[number:]}{PLAIN[:number]}" for number in range(30)]
    text = " and ".join(secrets)
    assert Redactor(secrets).text(text) == " and ".join(["[redacted]"] * 30)


@rows(
    "key",
    [
        "sk-" + "a1B2" * 8,
        "sk-ant-api03-" + "x_Y-" * 20,
        "sk-proj-" + "abcd" * 10,
        "AIza" + "Sy" * 17 + "x",
        "gsk_" + "q1W2" * 10,
        "xai-" + "q1W2" * 10,
        "xoxb-123456789012-abcdef",
        "ghp_" + "a1" * 18,
        "github_pat_" + "a1_" * 12,
        "hf_" + "aB" * 17,
        "ya29." + "a0AfH6" * 6,
        "AKIA" + "ABCD" * 4,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlc2ln",
    ],
)
def test_keys_that_were_never_loaded_are_known_by_their_looks(key):
    assert Redactor().text(f"bad: {key}, sorry") == "bad: [redacted], sorry"


@rows(
    ("text", "clean"),
    [
        ("authorization: Bearer abc.def", "authorization: Bearer [redacted]"),
        ('{"x-api-key": "hello", "a": 1}', '{"x-api-key": "[redacted]", "a": 1}'),
        ('{\\"x-api-key\\": \\"hello\\"}', '{\\"x-api-key\\": \\"[redacted]\\"}'),
        ("GET /v1/models?key=x&alt=sse", "GET /v1/models?key=[redacted]&alt=sse"),
        ("proxy said Basic dXNlcjpwdw==", "proxy said Basic [redacted]"),
        ("api_key='x'", "api_key='[redacted]'"),
        ("api_key=key-12345", "api_key=[redacted]"),
        ("Bearer token-a1", "Bearer [redacted]"),
    ],
)
def test_the_value_of_a_named_credential_is_scrubbed_however_short(text, clean):
    assert Redactor().text(text) == clean


@rows(
    "text",
    [
        "missing bearer token",
        "basic authentication is not supported",
        "authorization header required",
        "risk-assessment-of-the-whole-project",
        "claude-sonnet-4-5-20250929",
        "the key 'name' is missing",
        "task-" + "a" * 30,
        "",
        "providers.kimi.api_key: expected the environment variable MOONSHOT_API_KEY to be set, found none",
    ],
)
def test_ordinary_text_is_left_alone(text):
    assert Redactor([PLAIN]).text(text) is text


def test_a_secret_below_six_characters_is_not_cut_out_of_words():
    assert Redactor(["x", "amp", "12345"]).text("example 12345") == "example 12345"


def test_a_secret_of_six_to_eleven_characters_is_scrubbed_whole():
    assert Redactor(["hunter2x"]).text("it is hunter2x; hunter is fine") == "it is [redacted]; hunter is fine"


def test_placeholders_and_public_words_are_no_secrets():
    redactor = Redactor(["ollama", "EMPTY", "my-provider-name"], public=["my-provider-name"])
    text = "ollama/llama3 EMPTY my-provider-name"
    assert redactor.text(text) == text


def test_half_a_surrogate_pair_does_not_break_it():
    assert Redactor([PLAIN]).text("\ud800 fine") == "\ud800 fine"
    assert PLAIN not in Redactor([PLAIN]).text(f"\ud800 {PLAIN}")


def test_of_a_service_account_only_the_secret_fields_count():
    account = json.dumps(
        {
            "type": "service_account",
            "project_id": "some-project-name",
            "private_key_id": "0123456789abcdef0123456789abcdef",
            "private_key": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7\n-----END PRIVATE KEY-----\n",
            "token_uri": "https://oauth2.googleapis.com/token",
        }
    )
    redactor = Redactor([account])
    kept = "https://oauth2.googleapis.com/token said no to some-project-name (BEGIN PRIVATE KEY)"
    assert redactor.text(kept) == kept
    assert redactor.text("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC 0123456789abcdef0123456789abcdef") == (
        "[redacted] [redacted]"
    )


def test_a_json_object_without_a_secret_field_is_a_secret_as_a_whole():
    odd = '{"weird": "abcdefghijklmnop"}'
    assert Redactor([odd]).text(f"got {odd}") == "got [redacted]"


def test_a_hostile_text_takes_no_more_than_its_length():
    text = "eyJ" * 20_000 + " authorization:" + " " * 60_000
    assert Redactor([PLAIN]).text(text) == text


@pytest.mark.parametrize("between", [b'", "', b"A" * 40, b" "])
def test_what_looks_like_a_key_is_found_anywhere_in_megabytes(between: bytes) -> None:
    keys = [b"sk-" + b"k1" * 12, b"AIza" + b"k2" * 12, b"x-api-key: " + b"k3" * 12, b"Bearer " + b"k4" * 12]
    filler = between * (300_000 // len(between))
    clean = Redactor().data(filler + filler.join(b" " + key + b" " for key in keys) + filler)
    assert clean.count(b"[redacted]") == len(keys)
    assert not any(word * 2 in clean for word in (b"k1", b"k2", b"k3", b"k4"))


def test_a_long_text_without_secrets_is_the_same_object() -> None:
    text = b'{"task-key": [1, 2]}, ' * 20_000
    assert Redactor().data(text) is text


WORDS = (
    "sk-", "AIza", "gsk_", "xai-", "xoxb-", "ghp_", "gho_", "github_pat_", "hf_", "ya29.", "AKIA", "eyJ", "Bearer ",
    "basic ", "?key=", "&access_token=", ";auth=", "X-Goog-Api-Key: ", 'authorization": "', "api_key=", "apikey",
    "token", "a1B2c3D4e5F6g7H8i9J0", "ABCDEFGH01234567", ".", "-", " ", ",", '"', "is ", "%20", "=",
)  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=30), st.integers(0, 300))
def test_few_places_in_a_long_text_are_masked_as_many_in_a_short_one(words, padding):
    """Of a long text only the places where a match may begin are looked at."""
    text, around = "".join(words), ". " * padding * 10
    short = Redactor().text(f". {text}. ")
    assert Redactor().text(f"{around}. {text}. {around}") == f"{around}{short}{around}"


KINDS = {
    "sk-": (16, "-"), "AIza": (20, "-"), "gsk_": (16, "-"), "xai-": (20, "-"), "xoxp-": (10, "-"), "gho_": (16, "_"),
    "ghs_": (16, "_"), "ghu_": (16, "_"), "ghr_": (16, "_"), "hf_": (20, "a"), "ya29.": (16, "."), "AKIA": (16, "A"),
}  # fmt: skip


@rows("begin", KINDS)
def test_what_looks_like_a_key_is_one_from_its_shortest_length_on(begin):
    length, odd = KINDS[begin]
    letter = "A" if begin == "AKIA" else "a"
    key = begin + letter * (length - 1) + (odd if odd != "." else "b")
    assert Redactor().text(f"({key})") == "([redacted])"
    assert Redactor().text(f"({key[:-1]})") == f"({key[:-1]})"


def test_a_token_of_three_parts_needs_eight_characters_in_the_first_two():
    for text, hidden in (
        ("eyJabcdefgh.abcdefgh", True),
        ("eyJabcdefgh.abcdefgh.", True),
        ("eyJabcdefg.abcdefgh", False),
        ("eyJabcdefgh.abcdefg", False),
        ("xeyJabcdefgh.abcdefgh", False),
    ):
        assert (Redactor().text(text) == "[redacted]") is hidden, text


NAMED = [
    "bearer ", "Bearer%20", "BASIC ", "?key=", "&api_key=", ";apikey=", "?access_token=", "&token=", "?auth=",
    "x-api-key: ", "x-goog-api-key=", "Authorization: ", "authorization: Basic ", "api-key = '", 'apikey":"',
]  # fmt: skip


@rows("name", NAMED)
def test_the_value_behind_each_name_of_a_credential_is_hidden(name):
    for filler in ("", ". " * 2000):
        assert Redactor().text(f"{filler} {name}v4lue") == f"{filler} {name}[redacted]"
    assert Redactor().text(f"{name}[redacted]") == f"{name}[redacted]"


def test_placeholders_are_known_in_any_case():
    words = [
        "dummy",
        "empty",
        "lm-studio",
        "lmstudio",
        "local",
        "localhost",
        "no-key",
        "no-key-required",
        "none",
        "not-needed",
        "not-required",
        "null",
        "ollama",
        "placeholder",
        "sk-no-key-required",
        "unused",
        "your-api-key",
    ]
    for word in words:
        assert Redactor([word, word.upper()]).values(f"{word} {word.upper()}".encode()) == (
            f"{word} {word.upper()}".encode()
        )


def test_secret_fields_of_a_json_object_are_known_by_the_end_of_their_names():
    for name in ("private_key", "private_key_id", "client_secret", "refresh_token", "PASSWORD", "my_api_key"):
        account = json.dumps({name: "abcdefgh1234", "project": "projectname99"})
        assert Redactor([account]).text("abcdefgh1234 projectname99") == "[redacted] projectname99", name
    other = json.dumps({"token": 5, "secret": "", "key": "abcdefgh1234"})
    assert Redactor([other]).text(other) == "[redacted]"
    assert Redactor(["{not json at all}"]).text("{not json at all}") == "[redacted]"
    assert Redactor(["  abcdefgh  "]).text("abcdefgh") == "[redacted]"


def test_secrets_of_five_and_six_characters_and_pieces_of_eleven_and_twelve():
    assert Redactor(["abcde"]).text("abcde") == "abcde"
    assert Redactor(["abcdef"]).text("abcdef") == "[redacted]"
    assert Redactor([PLAIN]).text(PLAIN[:11]) == PLAIN[:11]
    assert Redactor([PLAIN]).text(PLAIN[:12]) == "[redacted]"
    assert (
        Redactor(["ab", "cdefgh"]).knowing(["ijklmn"]).text("cdefgh ijklmn ab") == "[redacted] [redacted] ab"
    )
