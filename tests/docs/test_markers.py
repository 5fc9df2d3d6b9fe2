"""The comments above blocks are understood, or reported as wrong."""

from textwrap import dedent

import pytest

from proofs.docs_blocks.blocks import BadPage, blocks_of
from tests.tiers import rows


def blocks(text):
    return blocks_of("page.md", dedent(text))


def test_a_block_is_its_lines_without_the_indentation_of_its_fence():
    (block,) = blocks(
        """
        - in a list

          ```sh
          if true
            then echo
          fi
          ```
        """
    )
    assert (block.language, block.text, block.place) == ("sh", "if true\n  then echo\nfi\n", "page.md:5")


def test_markers_tell_about_the_block_below_them():
    first, second = blocks(
        """
        <!-- run: gateway; MOONSHOT_API_KEY; WIREGLOT_KEY=none -->
        <!-- given: cd here -->

        ```sh
        true
        ```

        ```sh
        true
        ```
        """
    )
    assert first.words == {"gateway"}
    assert dict(first.variables).keys() == {"MOONSHOT_API_KEY", "WIREGLOT_KEY"}
    assert dict(first.variables)["WIREGLOT_KEY"] == "none"
    assert first.given == "cd here\n"
    assert (second.words, second.variables, second.given) == (frozenset(), (), "")


def test_what_holds_for_all_is_added_to_each_but_for_one_that_is_clean():
    first, second = blocks(
        """
        <!-- run all: gateway; goes on; GEMINI_API_KEY -->
        ```sh
        true
        ```
        <!-- run: clean; fails -->
        ```sh
        false
        ```
        """
    )
    assert first.words == {"gateway", "goes on"}
    assert [len(block.variables) for block in (first, second)] == [1, 0]
    assert second.words == {"clean", "fails"}


def test_a_fence_without_language_behind_a_command_is_its_output_unless_a_heading_is_between():
    _, output = blocks("```sh\necho 1\n```\nIt says\n```\n1\n```\n")
    assert output.output == "command"
    with pytest.raises(BadPage, match=r"page\.md:.*what is this block"):
        blocks("```sh\necho 1\n```\n## Next\n```\n1\n```\n")


def test_a_made_up_comment_in_code_is_no_marker():
    (block,) = blocks("```text\n$ x\n```\n".replace("text", "console"))
    assert block.is_session
    assert len(blocks("```sh\n# <!-- not run -->\n```\n")) == 1


def test_comments_of_others_are_left_alone():
    assert (
        len(blocks("<!-- generated: x -->\n```sh\ntrue\n```\n<!-- end -->\n\n<!-- a note -->\n\ntext\n")) == 1
    )


@rows(
    ("text", "problem"),
    [
        ("<!-- not run: -->\n```sh\n```\n", "says nothing"),
        ("<!-- not run -->\n```sh\n```\n", "says nothing"),
        ("<!-- run: gatway -->\n```sh\n```\n", "'gatway': expected some of"),
        ("<!-- notrun: a reason -->\n```sh\n```\n", "says nothing about the block"),
        ("<!-- output: both -->\n```\n```\n", "expected nothing, `gateway` or `about`"),
        ("<!-- run: gateway -->\ntext\n", "belongs to no block"),
        ("<!-- run: gateway -->\n", "belongs to no block"),
        ("```sh\n```\n<!-- run all: gateway -->\n", "before the first block"),
        ("```sh\ntrue\n", "a fence that does not end"),
        ("<!-- run: gateway\n```sh\n```\n", "a comment that does not end"),
        ("text\n\n    make test\n", "by indentation"),
        ("```\na drawing\n```\n", "what is this block"),
    ],
)
def test_what_cannot_be_understood_is_reported_with_its_place(text, problem):
    with pytest.raises(BadPage, match=problem) as reported:
        blocks(text)
    assert str(reported.value).startswith("page.md:")
