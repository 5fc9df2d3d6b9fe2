"""What a run may cost, and where it must end."""

from __future__ import annotations

import re
import time
from typing import Final
from urllib.parse import urlsplit

import msgspec

from wireglot.cli.paint import count
from wireglot.ir.outcome import Usage
from wireglot.probe.case import Case
from wireglot.probe.rehearsal import Part, Rehearsal
from wireglot.probe.talk import Ledger
from wireglot.providers.list_price import ListPrice
from wireglot.providers.prices import cost, list_price
from wireglot.providers.spec import names, provider

_AMOUNT: Final = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)(USD|CNY|EUR)?", re.IGNORECASE)
_MICRO: Final = 1_000_000


class UnusableBudget(Exception):
    """In words for people."""


class Budget(msgspec.Struct, frozen=True):
    """In tokens, or in millionths of a currency."""

    amount: int
    currency: str = ""


def budget_of(text: str) -> Budget:
    found = _AMOUNT.fullmatch(text)
    if found is None or (not found[2] and "." in found[1]):
        raise UnusableBudget("--budget: expected a number of tokens (200000) or an amount of money (0.50USD)")
    if found[2]:
        return Budget(round(float(found[1]) * _MICRO), found[2].upper())
    return Budget(int(found[1]))


def price_at(url: str, model: str) -> ListPrice | None:
    """What the provider at that host asks for the model, as far as the catalog knows."""
    host = urlsplit(url).hostname
    for name in names():
        spec = provider(name)
        urls = (spec.base_url, *spec.base_urls.values())
        if host and any(urlsplit(each.replace("{", "").replace("}", "")).hostname == host for each in urls):
            found = list_price(spec, model, int(time.time() * 1000))
            if found is not None:
                return found
    return None


def bound(rehearsal: Rehearsal, price: ListPrice | None) -> str:
    """Requests, tokens and money at most, in words."""
    tokens = f"{rehearsal.input:,} tokens in and {rehearsal.output:,} out at most"
    told = f"{count(rehearsal.requests, 'request')}, {tokens}"
    if price is None:
        return f"{told}; no price of the model is known here"
    most = cost(price.price, Usage(input=rehearsal.input, output=rehearsal.output))
    return f"{told}: at most {money(most)} {price.currency}"


def money(micro: int) -> str:
    return f"{micro / _MICRO:.4f}" if micro < _MICRO else f"{micro / _MICRO:.2f}"


class Purse:
    """Ends a run before the next case could spend more than there is."""

    def __init__(
        self, budget: Budget | None, price: ListPrice | None, parts: tuple[Part, ...], ledger: Ledger
    ) -> None:
        self._budget = budget
        self._price = price
        self._parts = {part.case: part for part in parts}
        self._ledger = ledger
        if budget is not None and budget.currency and (price is None or price.currency != budget.currency):
            raise UnusableBudget(
                f"--budget: no price of this model in {budget.currency} is known: give tokens"
            )

    def affordable(self, case: Case) -> str:
        if self._budget is None:
            return ""
        part = self._parts.get(case.id)
        # Twice: a case that says nothing is tried again.
        more = (2 * part.input, 2 * part.output) if part is not None else (0, 0)
        most = self._amount(self._ledger.input + more[0], self._ledger.output + more[1])
        return "it could spend more than the budget" if most > self._budget.amount else ""

    def _amount(self, tokens_in: int, tokens_out: int) -> int:
        if self._price is None or self._budget is None or not self._budget.currency:
            return tokens_in + tokens_out
        return cost(self._price.price, Usage(input=tokens_in, output=tokens_out))
