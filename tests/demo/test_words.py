"""The sentences of the demo model, the language it hears, and how texts are counted and cut."""

from __future__ import annotations

import pytest

from tests.tiers import rows
from wireglot.demo import words


@rows(
    ("text", "language"),
    [
        ("こんにちは", "Japanese"),
        ("안녕하세요", "Korean"),
        ("你好世界", "Chinese"),
        ("Привет", "Russian"),
        ("مرحبا", "Arabic"),
        ("Γειά σου", "Greek"),
        ("नमस्ते", "Hindi"),
        ("שלום", "Hebrew"),
        ("What is the weather in Rome?", "English"),
        ("Wie ist das Wetter?", "German"),
        ("Quel est le temps dans les Alpes", "French"),
        ("¿Qué es el tiempo y cómo?", "Spanish"),
        ("Che tempo è, come gli altri", "Italian"),
        ("Como você não", "Portuguese"),
        ("Wat is het weer, hoe en niet", "Dutch"),
        ("", "English"),
        ("zzz 42", "English"),
    ],
)
def test_the_language_is_guessed_by_script_and_frequent_words(text: str, language: str) -> None:
    assert words.language_of(text) == language


@pytest.mark.parametrize("model", ["", "demo", "demo-gemini"])
def test_a_greeting_names_the_model_and_quotes_one_line(model: str) -> None:
    assert words.greeting("", model).startswith(f"Hello! I am {model or 'demo'}, ")
    greeting = words.greeting("the  one\nline", model)
    assert greeting.startswith(f"Hello! I am {model or 'demo'}, ")
    assert greeting.endswith("You said, in English: “the one line”")


def test_a_long_line_is_cut_at_400_characters() -> None:
    assert words.greeting("x" * 399, "m").endswith(f"“{'x' * 399}”")
    assert words.greeting("x" * 400, "m").endswith(f"“{'x' * 399}…”")


def test_prose_has_as_many_words_as_were_asked_for() -> None:
    assert words.prose(3) == "the demo model"
    assert words.prose(0) == ""
    many = words.prose(40).split()
    assert len(many) == 40
    assert many[19:38] == many[:19], "the sentence again"


def test_a_thought_is_about_the_words_or_the_results() -> None:
    assert words.thought("Wie ist das") == "The user writes German, 3 words. I will answer as a demo should."
    assert words.thought("Wie ist das", 2) == words.thought("Wie ist das")
    assert words.thought("", 2) == "2 results are here. I will go on as a demo should."
    assert words.thought("").startswith("The user writes English, 0 words.")


@rows(
    ("results", "said"),
    [
        (["18"], "The tool answered:\n18"),
        (["18", "24"], "The 2 tools answered:\n18\n24"),
        ([""], "The tool answered nothing."),
        (["x" * 2000], "The tool answered:\n" + "x" * 2000),
        (["x" * 2001], "The tool answered:\n" + "x" * 1999 + "…"),
    ],
)
def test_results_are_quoted_up_to_2000_characters(results: list[str], said: str) -> None:
    assert words.quotation(results) == said


def test_a_token_has_four_bytes() -> None:
    assert [words.tokens(text) for text in ("", "a", "abcd", "abcde", "ééé")] == [0, 1, 1, 2, 2]
    assert words.first_tokens("abcdefghij", 2) == "abcdefgh"
    assert words.first_tokens("aéé", 1) == "aé", "no character is cut"


def test_a_stream_is_cut_by_words_and_long_words_into_pieces_of_12() -> None:
    assert list(words.word_pieces("two  words\n")) == ["two  ", "words\n"]
    assert list(words.word_pieces("  ")) == ["  "]
    assert list(words.word_pieces("x" * 25)) == ["x" * 12, "x" * 12, "x"]
    assert list(words.even_pieces("abcde", 2)) == ["ab", "cd", "e"]
