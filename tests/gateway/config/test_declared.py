"""A setting is declared once, at its field: reader, environment and documentation follow from that."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct
from msgspec.structs import replace

from tests.gateway.config.config_files import loaded, problems
from tests.tiers import rows
from tools import config_tables
from tools.config_tables import STRUCTS, environment_table, settings_table
from wireglot.gateway.config.environment import overlaid, variables
from wireglot.gateway.config.problems import Problems
from wireglot.gateway.config.table import Table, Undeclared, declared
from wireglot.gateway.process_limits import setting as declare
from wireglot.gateway.settings import Settings
from wireglot_core.dialects import registry


class Kettle(Struct, frozen=True):
    """A table nobody has seen before, all of it in one place."""

    cups: Annotated[int, Meta(ge=1, le=9, description="cups at once", extra={"env": "TEA_CUPS"})] = 2
    heat: Annotated[float, Meta(gt=0, description="what it takes", extra={"unit": "degrees"})] = 96.5
    whistle: Annotated[bool, Meta(description="whether it tells", extra={"env": "TEA_WHISTLE"})] = True
    colour: Annotated[Literal["red", "blue"], Meta(description="how it looks")] = "red"
    guests: Annotated[
        tuple[str, ...], Meta(description="who may drink", extra={"expected": "a list of guests"})
    ] = ()
    leaves: Annotated[str | None, Meta(description="what is in it")] = None
    pauses: Annotated[tuple[float, ...], Meta(description="between two cups")] = ()
    maker: Annotated[str, declare("not for people to set", computed=True)] = "us"


class Kitchen(Struct, frozen=True):
    kettle: Annotated[Kettle, Meta(description="for tea")] = Kettle()
    open: Annotated[bool, Meta(description="whether anybody may come in")] = False


def read(document: dict[str, Any], environ: dict[str, str] | None = None) -> tuple[Kitchen, list[str]]:
    found = Problems()
    table = Table(overlaid(document, environ or {}, found, Kitchen), "", found)
    kitchen = table.over(Kitchen())
    table.close()
    return kitchen, [str(problem) for problem in found.found]


def test_a_new_setting_is_read_where_it_is_set_and_has_its_default_elsewhere() -> None:
    given = {
        "cups": 3,
        "heat": 80,
        "whistle": False,
        "colour": "blue",
        "guests": ["ann"],
        "leaves": "oolong",
        "pauses": [1, 2.5],
    }
    kettle = Kettle(
        cups=3,
        heat=80.0,
        whistle=False,
        colour="blue",
        guests=("ann",),
        leaves="oolong",
        pauses=(1.0, 2.5),
    )
    assert read({"kettle": given}) == (Kitchen(kettle), [])
    assert read({}) == (Kitchen(), [])


def test_every_problem_of_a_new_setting_is_reported_with_its_place() -> None:
    given = {
        "cups": 12,
        "heat": 0,
        "whistle": "yes",
        "colour": "bleu",
        "guests": "ann",
        "leaves": 1,
        "pauses": [-1],
        "cup": 1,
        "maker": "them",
    }
    kitchen, reported = read({"kettle": given, "opne": True})
    assert kitchen == Kitchen()
    assert reported == [
        "kettle.cups: expected a whole number from 1 to 9, found 12",
        "kettle.heat: expected more than 0, found 0",
        'kettle.whistle: expected true or false, found "yes"',
        'kettle.colour: expected one of blue, red (did you mean blue?), found "bleu"',
        "kettle.guests: expected a list of guests, found text of 3 characters",
        "kettle.leaves: expected text, found 1",
        "kettle.pauses: expected a number from 0 up, found a list",
        "kettle.cup: expected a field that exists (did you mean cups?), found an unknown one",
        "kettle.maker: expected one of colour, cups, guests, heat, leaves, pauses, whistle, found an unknown one",
        "opne: expected a field that exists (did you mean open?), found an unknown one",
    ]


def test_a_variable_wins_over_the_file_and_its_problems_bear_its_name() -> None:
    kitchen, reported = read({"kettle": {"cups": 3, "heat": 1}}, {"TEA_CUPS": "4", "TEA_WHISTLE": "false"})
    assert (kitchen.kettle, reported) == (Kettle(cups=4, heat=1.0, whistle=False), [])
    assert read({}, {"TEA_CUPS": "12", "TEA_WHISTLE": "maybe"})[1] == [
        "TEA_CUPS: expected a whole number from 1 to 9, found 12",
        'TEA_WHISTLE: expected true or false, found "maybe"',
    ]


def test_a_new_setting_is_documented_with_type_bounds_default_and_variable() -> None:
    assert settings_table(Kettle).splitlines()[2:] == [
        "| `cups` | whole number, 1 to 9 | 2 | cups at once |",
        "| `heat` | degrees, more than 0 | 96.5 | what it takes |",
        "| `whistle` | switch | true | whether it tells |",
        "| `colour` | `red`, `blue` | `red` | how it looks |",
        "| `guests` | list | none | who may drink |",
        "| `leaves` | text | none | what is in it |",
        "| `pauses` | list | none | between two cups |",
    ]
    assert "| `TEA_CUPS` | `cups` of `[kettle]` |" in environment_table(Kitchen)


def test_a_setting_without_a_description_is_refused_wherever_it_is_used() -> None:
    class Silent(Struct, frozen=True):
        cups: int = 2

    class Chatty(Struct, frozen=True):
        cups: Annotated[int, Meta(description="cups", extra={"colour": "red"})] = 2

    for use in (declared, settings_table):
        with pytest.raises(Undeclared, match=r"Silent\.cups: no description"):
            use(Silent)
    with pytest.raises(Undeclared, match=r"Chatty\.cups: unused variable colour"):
        declared(Chatty)


@rows("struct", [struct for structs in STRUCTS.values() for struct in structs])
def test_every_setting_has_a_description_and_a_default_within_its_bounds(struct: type[Struct]) -> None:
    found = Problems()
    for setting in declared(struct).values():
        assert setting.description
        assert not setting.description.endswith(".")
        plain = isinstance(setting.default, bool | int | float)
        if plain and setting.unit != "money" and setting.form == "":
            Table({setting.name: setting.default}, struct.__name__, found).read(struct, setting.name)
    assert found.found == []


def test_every_table_that_settings_hold_is_a_block_of_the_page() -> None:
    reported = {struct for structs in STRUCTS.values() for struct in structs}
    for struct in reported:
        assert reported >= {setting.type for setting in declared(struct).values() if setting.is_table}


def test_no_two_settings_share_a_variable() -> None:
    names = [setting.env for _, setting in variables()]
    assert len(names) == len(set(names))
    assert all(name.startswith("WIREGLOT_") for name in names)


def test_a_default_of_the_declaration_is_the_one_of_the_snapshot() -> None:
    whole = Settings()
    for name, setting in declared(Settings).items():
        assert getattr(whole, setting.attribute) == setting.default, name


def test_the_generated_blocks_are_those_of_the_declarations() -> None:
    assert set(config_tables.blocks()) == {*STRUCTS, "environment"}


# Dialects are settings, too: their names come from the registry.


def test_an_unknown_dialect_is_refused_with_the_known_ones_listed(tmp_path: Path) -> None:
    text = '[providers.mine]\ndialect = "nonsense"\nbase_url = "http://127.0.0.1:1/v1"\n'
    listed = (
        "one of anthropic, code-assist, gemini, gemini-interactions, ollama, openai-chat, openai-responses"
    )
    assert problems(tmp_path, text) == {"providers.mine.dialect": f'{listed} / "nonsense"'}
    several = text.replace('"nonsense"', '["openai-chat", "nonsense"]').replace("dialect ", "dialects ")
    assert problems(tmp_path, several) == {"providers.mine.dialects": f'{listed} / "nonsense"'}


def test_a_dialect_that_only_clients_speak_is_refused(tmp_path: Path) -> None:
    text = '[providers.mine]\ndialect = "gemini-simple"\nbase_url = "http://127.0.0.1:1/v1"\n'
    assert list(problems(tmp_path, text)) == ["providers.mine.dialect"]


@pytest.fixture(name="house_style")
def _house_style() -> Iterator[None]:
    chat = registry.dialect("openai-chat")
    registry.register(replace(chat, surface=replace(chat.surface, name="house-style")))
    yield
    registry.unregister("house-style")


@pytest.mark.usefixtures("house_style")
def test_a_dialect_of_the_registry_is_accepted_by_its_name(tmp_path: Path) -> None:
    text = '[providers.mine]\ndialect = "house-style"\nbase_url = "http://127.0.0.1:1/v1"\napi_key = "k"\n'
    spec = loaded(tmp_path, text).providers["mine"].spec
    assert (spec.dialects, spec.auth) == (("house-style",), "bearer")
    several = text + 'base_urls = { house-style = "http://127.0.0.1:2" }\n'
    assert loaded(tmp_path, several).providers["mine"].spec.base_urls == {"house-style": "http://127.0.0.1:2"}
    assert "house-style" in problems(tmp_path, text.replace("house-style", "x"))["providers.mine.dialect"]


def test_settings_are_read_off_their_field_and_not_off_the_name_inside() -> None:
    """`models` in the file is `rules` in the snapshot."""
    assert declared(Settings)["models"].attribute == "rules"
    assert "rules" not in declared(Settings)
