"""Published prices of a provider's models: with their source, their date, and when they apply."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Final

import msgspec
from msgspec import Meta

PerMillion = Annotated[int, Meta(ge=0, lt=10**15, extra={"unit": "money"})]
Day = Annotated[str, Meta(pattern=r"^20\d\d-[01]\d-[0-3]\d$")]
Hour = Annotated[int, Meta(ge=0, le=24)]
Weekday = Annotated[int, Meta(ge=0, le=6)]
"""Monday is 0."""

_HOUR_MS: Final = 3_600_000


class Rates(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Millionths of a currency unit for a million tokens (a dollar: 1000000). None: the price of the count it
    belongs to (reasoning as output, all others as input)."""

    input: Annotated[PerMillion, Meta(description="tokens of the request")]
    output: Annotated[PerMillion, Meta(description="tokens of the answer")]
    cache_read: Annotated[PerMillion | None, Meta(description="default: as `input`")] = None
    cache_write: Annotated[PerMillion | None, Meta(description="default: as `input`")] = None
    cache_write_long: Annotated[PerMillion | None, Meta(description="default: as `cache_write`")] = None
    reasoning: Annotated[PerMillion | None, Meta(description="default: as `output`")] = None


class Tier(Rates, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """The rates for all tokens of a request whose input is longer than `over`, cached tokens included."""

    over: Annotated[int, Meta(gt=0, description="tokens of input beyond which it holds, for all tokens")]


class Price(Rates, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    tiers: Annotated[
        tuple[Tier, ...],
        Meta(
            description="other prices for long requests, shortest first: "
            "`[{ over = 200000, input = 4, output = 18 }]`",
            extra={"form": "list of tables"},
        ),
    ] = ()


class ListPrice(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """One published price. If a model has several, the last one that applies at a moment is its price."""

    model: str
    """A single name: a pattern would price models that are not released yet."""
    price: Price
    source: Annotated[str, Meta(pattern="^https://")]
    """The vendor's page with the price."""
    date: Day | None = None
    """When the price was read from its source, or from a list of prices. None in the generated list, which
    has one date for all."""
    says: str = ""
    """Where the price was looked up, if not at the source itself; anything unusual about it."""
    currency: str = "USD"
    since: Day | None = None
    """The first day (UTC) on which it applies, for a price that was announced."""
    hours: tuple[tuple[Hour, Hour], ...] = ()
    """From and to (UTC), if it does not apply all day."""
    weekdays: tuple[Weekday, ...] = ()
    """The weekdays on which it applies; empty: all."""

    def holds(self, at: int) -> bool:
        """`at` in unix milliseconds."""
        day, hour = divmod(at // _HOUR_MS, 24)
        if self.since is not None and day < day_number(self.since):
            return False
        if self.weekdays and (day + 3) % 7 not in self.weekdays:  # the first day of unix time was a Thursday
            return False
        return not self.hours or any(start <= hour < end for start, end in self.hours)


class Unpriced(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Models in service without a price here, and why."""

    match: str
    why: str
    date: Day
    """When it was looked up."""


class PriceList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The generated list: data of a price registry about the catalog's models (`make prices`)."""

    registry: str
    version: str
    date: Day
    providers: dict[str, tuple[ListPrice, ...]]
    contexts: dict[str, dict[str, int]] = {}
    """Context windows in tokens, by provider and model."""

    def of(self, provider: str) -> tuple[ListPrice, ...]:
        says = f"as {self.registry} {self.version} lists it"
        return tuple(
            msgspec.structs.replace(entry, date=self.date, says=says)
            for entry in self.providers.get(provider, ())
        )


@cache
def day_number(day: str) -> int:
    """Days since 1970-01-01. Years are counted from March, so that the leap day is the last of a year; this
    module cannot use a calendar."""
    year, month, date = map(int, day.split("-"))
    year -= month < 3
    leaps = year // 4 - year // 100 + year // 400
    return 365 * year + leaps + (153 * ((month - 3) % 12) + 2) // 5 + date - 1 - 719_468


_read: Final = msgspec.json.Decoder(PriceList).decode


@cache
def price_list() -> PriceList:
    from importlib.resources import files  # heavy; loaded only when a provider is needed

    data = (files("wireglot_core.providers") / "catalog" / "prices.json").read_bytes()
    return _read(data)
