"""What the dashboard shows: rows of panels, each with its expressions. Where they stand follows from that."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Kind = Literal["timeseries", "stat", "bargauge", "table"]

HERE: Final = 'job=~"$job", instance=~"$instance"'
"""Of the gateways that are chosen above the dashboard."""
_RATE: Final = "[$__rate_interval]"


class Query(msgspec.Struct, frozen=True):
    expression: str
    legend: str = ""


class Panel(msgspec.Struct, frozen=True):
    title: str
    kind: Kind
    unit: str
    queries: tuple[Query, ...]
    about: str = ""
    width: int = 8
    stacked: bool = False
    steps: tuple[tuple[float, str], ...] = ()
    """Colours from these values on."""


class Row(msgspec.Struct, frozen=True):
    title: str
    panels: tuple[Panel, ...]


def rate(metric: str, by: str = "", **labels: str) -> str:
    """A second, added up by some labels."""
    return f"sum{_by(by)} (rate({chosen(metric, **labels)}{_RATE}))"


def chosen(metric: str, **labels: str) -> str:
    text = "".join(f', {name}=~"{value}"' for name, value in labels.items())
    return f"wireglot_{metric}{{{HERE}{text}}}"


def quantile(part: float, metric: str, by: str = "") -> str:
    inner = rate(f"{metric}_bucket", ", ".join(filter(None, ("le", by))))
    return f"histogram_quantile({part:g}, {inner})"


def _by(labels: str) -> str:
    return f" by ({labels})" if labels else ""


def _stat(title: str, unit: str, expression: str, about: str = "", **more: object) -> Panel:
    return msgspec.structs.replace(Panel(title, "stat", unit, (Query(expression),), about, 4), **more)


def _lines(title: str, unit: str, *queries: tuple[str, str], about: str = "", stacked: bool = False) -> Panel:
    asked = tuple(Query(expression, legend) for expression, legend in queries)
    return Panel(title, "timeseries", unit, asked, about, stacked=stacked)


_FAILED: Final = f"({rate('requests_total', outcome='error')} or vector(0)) / {rate('requests_total')}"
_JOURNAL: Final = (
    f"sum by (instance) ({chosen('usage_journal_bytes')})"
    f" / sum by (instance) ({chosen('usage_journal_limit_bytes')})"
)
_WARN: Final = ((0.0, "green"), (0.8, "orange"), (0.95, "red"))
_BAD: Final = ((0.0, "green"), (0.01, "orange"), (0.1, "red"))
_NONE: Final = ((0.0, "green"), (1.0, "red"))

ROWS: Final = (
    Row(
        "At a glance",
        (
            _stat("Requests a second", "reqps", rate("requests_total")),
            _stat("Failed", "percentunit", _FAILED, "Errors of any kind, refusals included.", steps=_BAD),
            _stat("Being answered", "none", f"sum ({chosen('requests_in_flight')})"),
            _stat("First byte, 95 of 100", "s", quantile(0.95, "first_byte_seconds")),
            _stat(
                "Cost in this time",
                "none",
                f"sum by (currency) (increase({chosen('cost_total')}[$__range]))",
                "At list prices or your own, in units of the currency, without answers that have no price.",
            ),
            _stat(
                "Store away", "none", f"max ({chosen('store_down')})", "1: it does not answer.", steps=_NONE
            ),
        ),
    ),
    Row(
        "Traffic",
        (
            _lines(
                "Requests by dialect",
                "reqps",
                (rate("requests_total", "dialect"), "{{dialect}}"),
                stacked=True,
            ),
            _lines(
                "Requests by provider",
                "reqps",
                (rate("requests_total", "provider"), "{{provider}}"),
                stacked=True,
            ),
            _lines(
                "Requests that were not ok",
                "reqps",
                (
                    rate("requests_total", "status, outcome", outcome="error|client_abort|gateway_abort"),
                    "{{status}} {{outcome}}",
                ),
                stacked=True,
            ),
            _lines(
                "First byte",
                "s",
                (quantile(0.5, "first_byte_seconds", "provider"), "{{provider}} p50"),
                (quantile(0.95, "first_byte_seconds", "provider"), "{{provider}} p95"),
                about="From the request's head to the answer's first byte.",
            ),
            _lines(
                "Whole answer",
                "s",
                (quantile(0.5, "request_seconds", "provider"), "{{provider}} p50"),
                (quantile(0.95, "request_seconds", "provider"), "{{provider}} p95"),
            ),
            _lines(
                "At work and waiting",
                "none",
                (f"sum ({chosen('requests_in_flight')})", "being answered"),
                (f"sum ({chosen('requests_waiting')})", "waiting for their turn"),
            ),
        ),
    ),
    Row(
        "Providers",
        (
            _lines(
                "Failed attempts",
                "reqps",
                (rate("upstream_errors_total", "provider, kind"), "{{provider}} {{kind}}"),
                about="Before retries and fallbacks: clients may have seen nothing of it.",
                stacked=True,
            ),
            _lines(
                "Retries and fallbacks",
                "reqps",
                (rate("retries_total", "provider"), "again at {{provider}}"),
                (rate("fallbacks_total", "provider"), "on from {{provider}}"),
            ),
            _lines(
                "Open breakers",
                "none",
                (f"max by (route) ({chosen('breaker_open')})", "{{route}}"),
                about="Routes whose circuit breaker is open after failures.",
            ),
        ),
    ),
    Row(
        "Tokens and cost",
        (
            _lines("Tokens a second", "none", (rate("tokens_total", "kind"), "{{kind}}"), stacked=True),
            _lines(
                "Cost an hour, by model",
                "none",
                (
                    f"topk(10, 3600 * {rate('cost_total', 'provider, model, currency')})",
                    "{{provider}}/{{model}} {{currency}}",
                ),
                about="The ten dearest, in units of the currency.",
                stacked=True,
            ),
            _lines(
                "Answers without a price",
                "reqps",
                (rate("unpriced_total", "provider, model"), "{{provider}}/{{model}}"),
                about="Their cost is in no other panel: name it in [prices].",
            ),
        ),
    ),
    Row(
        "Keys",
        (
            _lines(
                "Requests by key",
                "reqps",
                (f"topk(10, {rate('key_requests_total', 'key')})", "{{key}}"),
                about='The ten that ask most. Beyond a hundred keys the rest is "other".',
                stacked=True,
            ),
            _lines(
                "Cost an hour, by key",
                "none",
                (f"topk(10, 3600 * {rate('key_cost_total', 'key, currency')})", "{{key}} {{currency}}"),
                stacked=True,
            ),
            Panel(
                "Budgets used",
                "bargauge",
                "percentunit",
                (
                    Query(
                        f"topk(10, max by (key, unit, period) ({chosen('key_budget_used_ratio')}))",
                        "{{key}}: {{unit}} a {{period}}",
                    ),
                ),
                "The ten fullest, with what requests under way hold.",
                steps=_WARN,
            ),
        ),
    ),
    Row(
        "Losses",
        (
            _lines(
                "Requests with losses, by grade",
                "reqps",
                (rate("losses_total", "grade"), "{{grade}}"),
                about="A request counts once for each feature that was bent.",
                stacked=True,
            ),
            _lines(
                "Serious losses, by feature",
                "reqps",
                (rate("losses_total", "feature", grade="serious"), "{{feature}}"),
                about="The model misses something that it was to know, or the client gets something else.",
            ),
            _lines(
                "Odd usage",
                "reqps",
                (rate("usage_flaws_total", "provider, flaw"), "{{provider}} {{flaw}}"),
                about="Answers in which the provider's own token counts do not add up.",
            ),
            _lines(
                "Odd streams",
                "reqps",
                (rate("stream_flaws_total", "provider, flaw"), "{{provider}} {{flaw}}"),
                about="Answers in which the provider's stream broke a rule of its dialect.",
            ),
            _lines(
                "Hosted tools",
                "reqps",
                (
                    rate("hosted_calls_total", "tool, backend, outcome"),
                    "{{tool}} {{backend}} {{outcome}}",
                ),
                about="Calls of hosted tools that the gateway ran: searches, pages, tools of MCP servers.",
            ),
        ),
    ),
    Row(
        "Usage and store",
        (
            _lines(
                "Journal",
                "percentunit",
                (_JOURNAL, "{{instance}}"),
                about="Usage that the store has not got yet.",
            ),
            _lines(
                "Usage not kept",
                "reqps",
                (rate("usage_dropped_total"), "dropped"),
                (rate("usage_unsynced_total"), "not on the disk in time"),
            ),
            _lines(
                "Store",
                "none",
                (f"max by (instance) ({chosen('store_down')})", "away from {{instance}}"),
                (f"max by (part, calls) ({chosen('store_breaker_open')})", "{{part}}: no {{calls}}"),
            ),
        ),
    ),
    Row(
        "Process",
        (
            _lines(
                "Connections",
                "none",
                (f"sum ({chosen('connections')})", "of clients"),
                (f"sum by (state) ({chosen('upstream_connections')})", "to providers, {{state}}"),
            ),
            _lines(
                "Bytes held",
                "bytes",
                (f"sum by (instance) ({chosen('buffered_bytes')})", "{{instance}}"),
                (f"sum by (instance) ({chosen('remembered_bytes')})", "{{instance}}: may come again"),
            ),
            _lines(
                "Refused before any dialect was known",
                "reqps",
                (rate("http_refused_total", "code"), "{{code}}"),
            ),
            _lines(
                "Configuration refused",
                "none",
                (f"max by (instance) ({chosen('config_refused')})", "{{instance}}"),
            ),
            _lines(
                "Up for",
                "s",
                (f"time() - max by (instance) ({chosen('start_time_seconds')})", "{{instance}}"),
            ),
            _lines("Version", "none", (f"count by (version) ({chosen('build_info')})", "{{version}}")),
        ),
    ),
)
