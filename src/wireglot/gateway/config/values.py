"""A value of a document -> a value of a setting's type, by its declaration; or what was expected instead."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

import msgspec

from wireglot.gateway.config.declared import Setting
from wireglot.gateway.config.problems import kind, one_of, shown


class Misfit(Exception):
    """The value is none for the setting."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(expected, found)
        self.expected = expected
        self.found = found


def fitted(setting: Setting, value: object) -> Any:
    """The value as the setting's type has it, within its bounds; else a Misfit."""
    wanted = setting.type
    if wanted is bool:
        return _of_type(bool, value, "true or false")
    if wanted is str:
        return _of_type(str, value, "text")
    if wanted is int:
        return _whole(setting, value)
    if wanted is float:
        return _within(setting, _converted(float, value, "a number"), value)
    if get_origin(wanted) is Literal:
        return _chosen(get_args(wanted), value)
    if wanted == tuple[str, ...]:
        return _texts(setting, value)
    if wanted == tuple[float, ...]:
        numbers = _converted(wanted, value, "a list of numbers")
        for number in numbers:
            _within(setting, number, value)
        return numbers
    raise TypeError(f"{setting.name}: {wanted} is read by code of its own")


def expected_number(setting: Setting) -> str:
    """The range of a setting in words."""
    noun = "a whole number" if setting.type is int else "a number"
    least = setting.least or 0
    return f"{noun} from {least} up" if setting.most is None else f"{noun} from {least} to {setting.most}"


def _of_type(wanted: type, value: object, expected: str) -> Any:
    if type(value) is not wanted:
        raise Misfit(expected, shown(value))
    return value


def _converted(wanted: Any, value: object, expected: str) -> Any:
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        raise Misfit(expected, shown(value)) from None


def _whole(setting: Setting, value: object) -> int:
    ranged = setting.least is not None or setting.most is not None
    number: int = _of_type(int, value, expected_number(setting) if ranged else "a whole number")
    return int(_within(setting, number, value))


def _within(setting: Setting, number: float, value: object) -> float:
    """No setting is below 0, declared or not. `value` is what a problem shows."""
    least, most, above = setting.least, setting.most, setting.more_than
    if (least is not None and number < least) or (most is not None and number > most):
        raise Misfit(expected_number(setting), shown(value))
    if not number >= 0:  # NaN is no number of anything either
        raise Misfit("a number from 0 up", shown(value))
    if above is not None and number <= above:
        raise Misfit(f"more than {above:g}", shown(value))
    if setting.less_than is not None and number >= setting.less_than:
        raise Misfit(f"less than {setting.less_than:g}", shown(value))
    return number


def _chosen(options: tuple[str, ...], value: object) -> Any:
    if type(value) is not str or value not in options:
        raise Misfit(one_of(options, value), shown(value))
    return value


def _texts(setting: Setting, value: object) -> tuple[str, ...]:
    if type(value) is list and all(type(item) is str and item for item in value):
        return tuple(value)
    raise Misfit(setting.expected or "a list of texts", kind(value))
