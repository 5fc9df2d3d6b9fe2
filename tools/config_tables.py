"""The tables of docs/configuration.md, written from the declarations of the settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, get_args, get_origin

from msgspec import NODEFAULT, Struct

from tools.blocks import table
from wireglot.gateway.config.environment import CONFIG_VARIABLE, variables
from wireglot.gateway.config.provider_table import LoginTable, ProvidersTable, ProviderTable
from wireglot.gateway.config.table import Setting, declared
from wireglot.gateway.process_limits import KIB, MIB, ProcessLimits
from wireglot.gateway.setting_tables import (
    BreakerPolicy,
    ManagedSettings,
    SafeguardSettings,
    TelemetrySettings,
    TraceSettings,
)
from wireglot.gateway.settings import (
    ClientKey,
    FetchSettings,
    Group,
    Keep,
    LoginSettings,
    McpSettings,
    Provider,
    Rule,
    SearchSettings,
    Secret,
    ServerSettings,
    Settings,
    StoreSettings,
)
from wireglot.http.retry import RetryPolicy
from wireglot.http.transport import Timeouts
from wireglot.stores.records import MICRO, KeyQuotas
from wireglot_core.providers.list_price import Price

STRUCTS: Final[dict[str, tuple[type[Struct], ...]]] = {
    "top": (Settings,),
    "server": (ServerSettings,),
    "providers": (ProvidersTable,),
    "provider": (ProviderTable, Provider),
    "login": (LoginTable,),
    "timeouts": (Timeouts,),
    "retry": (RetryPolicy,),
    "breaker": (BreakerPolicy,),
    "rule": (Rule,),
    "key": (ClientKey, KeyQuotas),
    "group": (Group, KeyQuotas),
    "price": (Price,),
    "store": (StoreSettings,),
    "keep": (Keep,),
    "sign-in": (LoginSettings,),
    "safeguards": (SafeguardSettings,),
    "search": (SearchSettings,),
    "fetch": (FetchSettings,),
    "mcp": (McpSettings,),
    "claude_code": (ManagedSettings,),
    "telemetry": (TelemetrySettings,),
    "trace": (TraceSettings,),
    "limits": (ProcessLimits,),
}
"""The blocks of the page, and whose settings each of them tells."""


def blocks() -> dict[str, str]:
    reported = {name: settings_table(*structs) for name, structs in STRUCTS.items()}
    return {**reported, "environment": environment_table()}


def settings_table(*structs: type[Struct]) -> str:
    settings = [setting for struct in structs for setting in declared(struct).values()]
    rows = [(f"`{one.name}`", written(one), _default(one), one.description) for one in settings]
    return table(("field", "type", "default", "meaning"), rows)


def environment_table(root: type[Struct] = Settings) -> str:
    reported = ((f"`{setting.env}`", _stands_for(place, setting)) for place, setting in variables(root))
    return table(("variable", "sets"), [(f"`{CONFIG_VARIABLE}`", "the file"), *reported])


def _stands_for(place: str, setting: Setting) -> str:
    if setting.example:
        return f"more `[{setting.name}]`, before the file's: `{setting.example}`"
    text = f"`{setting.name}` of `[{place}]`" if place else f"`{setting.name}`"
    return f"{text}, separated by commas" if get_origin(setting.type) is tuple else text


def written(setting: Setting) -> str:
    """How a value is written down, and within which bounds."""
    return ", ".join((_form(setting), *_bounds(setting)))


def _form(setting: Setting) -> str:
    wanted = setting.type
    if setting.form:
        return setting.form
    if setting.unit == "money":
        return "amount"
    if get_origin(wanted) is Literal:
        return ", ".join(f"`{option}`" for option in get_args(wanted))
    if get_origin(wanted) is tuple:
        return f"list of {setting.unit}" if setting.unit else "list"
    if setting.is_table or get_origin(wanted) is dict:
        return "table"
    names = {bool: "switch", str: "text", Secret: "secret", int: "whole number", float: "number"}
    return setting.unit or names[wanted]


def _bounds(setting: Setting) -> Iterator[str]:
    if setting.min_length:
        yield f"{setting.min_length} characters or more"
    if setting.most is not None:
        yield f"{_bound(setting, setting.least or 0)} to {_bound(setting, setting.most)}"
    elif setting.less_than is not None:
        yield f"less than {_bound(setting, setting.less_than)}"
    elif setting.least:
        yield f"{_bound(setting, setting.least)} or more"
    elif setting.more_than is not None:
        yield f"more than {_bound(setting, setting.more_than)}"


def _bound(setting: Setting, value: float) -> str:
    if setting.unit == "bytes":
        return shown(value)
    scaled = value / MICRO if setting.unit == "money" else value
    return str(int(scaled)) if scaled == int(scaled) else f"{scaled:g}"


def _default(setting: Setting) -> str:
    if setting.reported_default:
        return setting.reported_default
    if setting.default is NODEFAULT:
        return "must be given"
    if setting.is_table:
        return ""
    return shown(setting.default)


def shown(value: Any) -> str:
    """A value as one would write it down."""
    if isinstance(value, Secret):
        return shown(value.value)
    if value is None or value == "" or (isinstance(value, Iterable) and not value):
        return "none"
    if isinstance(value, str):
        return f"`{value}`"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value >= MIB and value % MIB == 0:
        return f"{value // MIB} MiB"
    if isinstance(value, int) and value >= KIB and value % KIB == 0:
        return f"{value // KIB} KiB"
    return f"{value:g}"
