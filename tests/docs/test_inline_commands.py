"""Commands inside sentences and tables can be given as they stand there."""

import argparse
import importlib.util
import re
import shlex
from functools import cache

import pytest

from proofs.docs_blocks.blocks import pages
from proofs.docs_blocks.stand_ins import refused_install
from tests.tiers import rows
from wireglot.cli.parser import build_parser

parser_of = cache(build_parser)
"""To build one takes longer than to use it."""

PLACEHOLDER = re.compile(r"\.\.\.|(?:^|[ =])[A-Z]+\b(?!=)|[|\[<]")
SPANS = [
    (page, span)
    for page, text in pages().items()
    if not page.startswith("docs/reference/")
    for span in re.findall(
        r"(?<!`)`((?:[A-Z_]+=\S+ )*(?:wireglot|python -m|pip install) [^`\n]+)`(?!`)",
        re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE),
    )
]


def given(kind):
    return sorted({span for _, span in SPANS if kind in span and not PLACEHOLDER.search(span)})


def test_there_are_such_commands():
    assert all(given(kind) for kind in ("wireglot ", "python -m ", "pip install "))


@rows("span", given("wireglot "))
def test_a_command_of_ours_can_be_given_or_is_the_beginning_of_one(span, capsys):
    words = shlex.split(re.sub(r"^(?:[A-Z_]+=\S+ )*", "", span))
    if words[0] == "wireglot" and not {"--help", "--version"} & set(words):
        try:
            parser_of(words[1] if words[1:] else "").parse_args(words[1:])
        except SystemExit:
            complaint = capsys.readouterr().err
            assert re.search(r"expected (one argument|one of [\w, -]+|[A-Z_]+( and [A-Z_]+)*) \(", complaint)
            assert ", got " not in complaint


@rows("span", given("python -m "))
def test_a_module_is_there(span):
    module = span.split("python -m ")[1].split()[0]
    assert importlib.util.find_spec(module) is not None


@pytest.mark.parametrize("span", given("pip install "))
def test_what_is_installed_is_ours_or_known(span):
    assert not refused_install(shlex.split(span)[2:])


def parsers(parser):
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from parsers(inner)


def examples():
    """Of the help, without what a shell does with them."""
    for parser in parsers(build_parser()):
        for line in (parser.epilog or "").splitlines():
            bare = re.sub(r"^.*\$\((.*?)\).*$", r"  \1", line)
            if (found := re.match(r"  wireglot (.*)$", bare)) is not None:
                yield re.sub(r"\s{3,}\S.*$| [<>|#].*$", "", found[1]).rstrip()


@rows("example", sorted(set(examples())))
def test_an_example_of_the_help_can_be_given(example):
    words = shlex.split(example)
    parser_of(words[0]).parse_args(words)


def test_examples_of_the_help_are_looked_at():
    assert {"run claude --model kimi/kimi-k3", "keys create laptop"} <= set(examples())
