"""The Dockerfile: what it says can be carried out without an engine, and it says what the page promises."""

from pathlib import Path, PurePosixPath

import pytest

from proofs.container.context import Context
from proofs.container.dockerfile import Unreadable, parse

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
OURS = parse(TEXT)[-1]


def test_stages_instructions_and_flags_are_read():
    first, last = parse(
        """
        # a comment
        FROM python:3.13 AS build
        ENV A=1 \\
            # between
            B="two words"
        RUN echo a \\
          && echo b
        FROM python:3.13
        COPY --from=build --chown=1:2 /a /b ./
        USER 5:6
        HEALTHCHECK --interval=1s CMD ["true", "a b"]
        ENTRYPOINT ["x"]
        CMD ["y"]
        """
    )
    assert (first.base, first.name, last.name) == ("python:3.13", "build", "")
    assert first.environment == {"A": "1", "B": "two words"}
    assert first.instructions[-1].value == "echo a && echo b"
    copied = last.instructions[0]
    assert (copied.flags, copied.words()) == ({"from": "build", "chown": "1:2"}, ["/a", "/b", "./"])
    assert last.user == (5, 6)
    assert last.health_command == ["true", "a b"]
    assert (last.command(), last.command("z")) == (["x", "y"], ["x", "z"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "RUN true",
        "FROM a\nADD x y",
        "FROM a\nONBUILD RUN true",
    ],
)
def test_what_cannot_be_carried_out_is_refused(text):
    with pytest.raises(Unreadable):
        parse(text)


@pytest.mark.parametrize("line", ["ENV A $B", "ENV A=$B", "ENTRYPOINT wireglot serve", "USER wireglot"])
def test_forms_that_mean_something_else_to_an_engine_are_refused(line):
    stage = parse(f"FROM a\n{line}")[0]
    with pytest.raises(Unreadable):
        (stage.environment, stage.command(), stage.user)


def test_everything_that_is_copied_is_there_and_sent_along():
    context = Context(ROOT)
    copied = [each for stage in parse(TEXT) for each in stage.instructions if each.name == "COPY"]
    sent = {path.name for each in copied if "from" not in each.flags for path in context.sources(each)}
    assert sent == set(context.named)


def test_what_is_not_named_is_not_sent_along():
    with pytest.raises(Unreadable, match="leaves it out"):
        Context(ROOT).sources(parse("FROM a\nCOPY .git ./.git")[0].instructions[0])


def test_it_runs_as_nobody_who_is_anybody_elsewhere():
    user, group = OURS.user
    assert user == group
    assert user >= 1000


def test_all_it_writes_is_in_one_volume():
    """[M3] The documented container did not start read-only without a volume."""
    assert OURS.volumes == [PurePosixPath("/var/lib/wireglot")]
    environment = OURS.environment
    assert PurePosixPath(environment["XDG_DATA_HOME"]) / "wireglot" == OURS.volumes[0]
    assert PurePosixPath(environment["TMPDIR"]) == OURS.volumes[0]


def test_what_is_installed_is_locked_and_nothing_is_fetched_at_the_start():
    runs = [each.value for stage in parse(TEXT) for each in stage.instructions if each.name == "RUN"]
    (locked,) = [line for line in runs if "-r requirements.lock" in line]
    assert "--require-hashes --only-binary :all:" in locked
    assert not any(each.name == "RUN" and "pip install" in each.value for each in OURS.instructions)
    assert OURS.command() == ["wireglot", "serve"]


def test_both_stages_stand_on_the_same_python():
    bases = {stage.base.partition("@")[0] for stage in parse(TEXT)}
    assert bases == {"python:3.13-bookworm", "python:3.13-slim-bookworm"}
