"""The packages under mutation testing, and the tests of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"

LEFT_OUT = (
    "tests/core/laws/test_matrix.py",
    "tests/core/laws/test_garbage.py",
    "tests/test_docs.py::test_the_committed_pages_are_up_to_date",
    "tests/gateway/state/test_long_conversations.py",
    "tests/gateway/state/test_conversations_at_once.py",
)
"""Slow tests that run many lines which other tests run too."""


SAMPLES = ("wireglot_core/testing/strategies/",)
"""Random values for property tests: another value is as good, and no test could notice it."""


class Package(NamedTuple):
    name: str
    sources: tuple[str, ...]
    """Globs below src."""
    tests: tuple[str, ...]

    def files(self) -> Iterator[str]:
        for pattern in self.sources:
            for path in sorted(SOURCES.glob(pattern)):
                yield path.relative_to(SOURCES).as_posix()


def _gateway(name: str, *more: str) -> Package:
    return Package(f"gateway/{name}", (f"wireglot/gateway/{name}/**/*.py",), (f"tests/gateway/{name}", *more))


_LAWS = ("tests/core/laws",)
_WIRE = (
    "tests/core/dialects/test_surfaces.py",
    "tests/core/dialects/test_taps.py",
    "tests/gateway/state/test_usage_checks.py",
    *_LAWS,
)

PACKAGES = (
    Package(
        "wireglot",
        ("wireglot/*.py", "wireglot_core/*.py"),
        (
            "tests/test_library_alone.py",
            "tests/core/test_translate.py",
            "tests/core/test_translate_details.py",
            "tests/test_typed_surface.py",
            "tests/core/dialects/test_registry.py",
            "tests/gateway/test_a_dialect_of_ones_own.py",
            *_LAWS,
        ),
    ),
    Package(
        "gateway/state/reasoning",
        ("wireglot/gateway/state/reasoning/*.py", "wireglot_core/dialects/envelope.py"),
        (
            "tests/gateway/state/test_reasoning.py",
            "tests/gateway/state/test_reasoning_absent.py",
            "tests/gateway/state/test_reasoning_lacking.py",
            "tests/gateway/state/test_reasoning_live.py",
            "tests/gateway/state/test_reasoning_names.py",
            "tests/gateway/state/test_reasoning_parts.py",
            "tests/gateway/state/test_reasoning_round_trips.py",
            "tests/gateway/state/test_reasoning_vault.py",
            "tests/gateway/state/test_client_shapes.py",
            "tests/core/dialects/test_envelope.py",
            "tests/stores/test_vault.py",
            "tests/pains",
        ),
    ),
    Package(
        "gateway/state/ledger",
        ("wireglot/gateway/state/ledger/*.py", "wireglot/stores/journal/*.py"),
        (
            "tests/gateway/state/test_ledger.py",
            "tests/gateway/state/test_ledger_drain.py",
            "tests/gateway/state/test_ledger_rows.py",
            "tests/gateway/state/test_ledger_sweep.py",
            "tests/gateway/state/test_usage.py",
            "tests/gateway/state/test_usage_checks.py",
            "tests/gateway/state/test_usage_report.py",
            "tests/stores/test_journal.py",
            "tests/stores/test_journal_files.py",
            "tests/stores/test_journal_steps.py",
            "tests/stores/test_ledger.py",
        ),
    ),
    Package(
        "dialects/anthropic",
        ("wireglot_core/dialects/anthropic/*.py",),
        ("tests/core/dialects/anthropic", *_WIRE),
    ),
    Package(
        "dialects/ollama",
        ("wireglot_core/dialects/ollama/*.py",),
        ("tests/core/dialects/ollama", "tests/gateway/relay/test_ollama_clients.py", *_WIRE),
    ),
    Package(
        "dialects/gemini_interactions",
        ("wireglot_core/dialects/gemini_interactions/*.py",),
        ("tests/core/dialects/gemini_interactions", "tests/gateway/state/test_interactions.py", *_WIRE),
    ),
    Package(
        "dialects/openai_chat",
        ("wireglot_core/dialects/openai_chat/*.py",),
        ("tests/core/dialects/openai_chat", *_WIRE),
    ),
    Package(
        "dialects/openai_responses",
        ("wireglot_core/dialects/openai_responses/*.py",),
        (
            "tests/core/dialects/openai_responses",
            "tests/gateway/state",
            "tests/gateway/test_websockets.py",
            "tests/gateway/test_upstream_sockets.py",
            *_WIRE,
        ),
    ),
    Package(
        "dialects/gemini",
        ("wireglot_core/dialects/gemini/*.py",),
        ("tests/core/dialects/gemini", "tests/requirements/test_code_assist.py", *_WIRE),
    ),
    Package(
        "dialects",
        ("wireglot_core/dialects/*.py", "wireglot_core/dialects/schema/*.py"),
        ("tests/core/dialects", "tests/gateway/state/test_usage_checks.py", *_LAWS),
    ),
    Package(
        "ir",
        ("wireglot_core/ir/*.py",),
        (
            "tests/core/ir",
            "tests/core/dialects/anthropic/test_safeguards.py",
            "tests/core/dialects/test_purpose.py",
            "tests/core/test_translate.py",
            *_LAWS,
        ),
    ),
    Package(
        "providers",
        ("wireglot_core/providers/**/*.py",),
        ("tests/core/providers", "tests/core/test_translate.py", *_LAWS),
    ),
    Package(
        "wire",
        ("wireglot_core/wire/*.py", "wireglot_core/cache/*.py"),
        ("tests/core/wire", "tests/core/cache", "tests/gateway/request"),
    ),
    Package(
        "http",
        ("wireglot/http/**/*.py",),
        ("tests/http", "tests/gateway/test_websockets.py", "tests/gateway/test_upstream_sockets.py"),
    ),
    Package(
        "stores",
        ("wireglot/stores/*.py", "wireglot/stores/memory/*.py", "wireglot/stores/sqlite/*.py"),
        ("tests/stores",),
    ),
    Package("stores/postgres", ("wireglot/stores/postgres/*.py",), ("tests/stores",)),
    Package("stores/redis", ("wireglot/stores/redis/*.py",), ("tests/stores",)),
    Package(
        "logins",
        ("wireglot/logins/*.py",),
        ("tests/logins", "tests/gateway/config/test_logins.py", "tests/gateway/relay/test_clouds.py"),
    ),
    Package("history", ("wireglot/history/*.py",), ("tests/history",)),
    Package("kimi", ("wireglot/kimi/*.py",), ("tests/kimi",)),
    Package(
        "traces",
        ("wireglot_core/traces/*.py",),
        (
            "tests/core/traces",
            "tests/core/testing",
            "tests/gateway/trace/test_replayed_errors.py",
            "tests/gateway/trace/test_tangled.py",
            "tests/cli/test_trace.py",
        ),
    ),
    Package(
        "testing",
        ("wireglot/testing/*.py", "wireglot/testing/scripted_upstream/*.py", "wireglot_core/testing/*.py"),
        ("tests/core/laws", "tests/core/testing", "tests/demo/test_upstream.py"),
    ),
    Package("demo", ("wireglot/demo/*.py",), ("tests/demo",)),
    Package("probe", ("wireglot/probe/**/*.py",), ("tests/probe", "tests/cli/test_probe.py")),
    Package("cli", ("wireglot/cli/**/*.py",), ("tests/cli", "tests/site/test_cli_reference.py")),
    _gateway(
        "config",
        "tests/cli/test_config.py",
        "tests/gateway/pages/test_managed.py",
        "tests/gateway/relay/test_contract_errors.py",
        "tests/gateway/state/test_keys_config.py",
        "tests/gateway/state/test_known_price.py",
        "tests/test_docs.py",
    ),
    _gateway(
        "entry",
        "tests/gateway/inspector",
        "tests/gateway/pages/test_models.py",
        "tests/gateway/state/test_admin.py",
        "tests/gateway/state/test_keys.py",
        "tests/gateway/state/test_reasoning_bound.py",
        "tests/gateway/state/test_sessions.py",
        "tests/site/test_http_api.py",
    ),
    _gateway("login"),
    _gateway(
        "observe",
        "tests/gateway/faults/test_faults_waiting.py",
        "tests/gateway/streams/test_stream_flaws.py",
        "tests/test_docs.py",
    ),
    _gateway(
        "targets",
        "tests/gateway/faults/test_faults_breaker.py",
        "tests/gateway/faults/test_faults_keys.py",
        "tests/gateway/faults/test_faults_retry.py",
        "tests/gateway/relay",
        "tests/gateway/state/test_sharing.py",
    ),
    _gateway(
        "request",
        "tests/core/dialects/test_purpose.py",
        "tests/gateway/faults/test_faults_errors.py",
        "tests/gateway/faults/test_faults_json.py",
        "tests/gateway/faults/test_faults_requests.py",
        "tests/gateway/faults/test_faults_retry.py",
        "tests/gateway/inspector/test_dashboard.py",
        "tests/gateway/inspector/test_own_exchanges.py",
        "tests/gateway/pages/test_counts.py",
        "tests/gateway/pages/test_health.py",
        "tests/gateway/relay/test_account_details.py",
        "tests/gateway/relay/test_judge.py",
        "tests/gateway/sdk/test_sdk_headers.py",
        "tests/gateway/state/test_quotas_grown.py",
        "tests/gateway/state/test_quotas_settled.py",
        "tests/gateway/state/test_sessions.py",
        "tests/gateway/test_steps.py",
        "tests/gateway/trace/test_policy.py",
        "tests/test_docs.py",
    ),
    _gateway(
        "streams",
        "tests/gateway/relay",
        "tests/gateway/faults/test_faults_midstream.py",
        "tests/gateway/faults/test_faults_midstream_shapes.py",
        "tests/gateway/faults/test_faults_streams.py",
        "tests/gateway/faults/test_no_error_under_2xx.py",
    ),
    _gateway(
        "relay",
        "tests/cli/test_ask_providers.py",
        "tests/gateway/faults",
        "tests/gateway/state/test_bought_answers.py",
        "tests/gateway/state/test_compaction.py",
        "tests/gateway/state/test_reasoning_live.py",
        "tests/gateway/state/test_recovery.py",
        "tests/gateway/test_embeddings.py",
        "tests/gateway/test_upstream_sockets.py",
    ),
    _gateway("trace", "tests/gateway/inspector"),
    _gateway(
        "inspector", "tests/gateway/trace/test_replay.py", "tests/gateway/trace/test_replayed_errors.py"
    ),
    _gateway("pages", "tests/gateway/request", "tests/test_docs.py"),
    _gateway("hosted"),
    Package("web", ("wireglot/web/*.py",), ("tests/web",)),
    Package(
        "gateway/state",
        tuple(
            f"wireglot/gateway/state/{name}*.py"
            for name in ("", "conversations/", "keys/", "quotas/", "responses/", "losses/")
        ),
        ("tests/gateway/state", "tests/gateway/inspector/test_setup_and_keys.py", "tests/test_docs.py"),
    ),
    Package(
        "gateway",
        ("wireglot/gateway/*.py",),
        (
            *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/gateway/test_*.py")),
            "tests/gateway/config",
            "tests/gateway/entry",
            "tests/gateway/faults",
            "tests/gateway/hosted/test_drained.py",
            "tests/gateway/observe",
            "tests/gateway/pages",
            "tests/gateway/relay",
            "tests/gateway/request",
            "tests/gateway/state/test_admin.py",
            "tests/gateway/state/test_bought_answers.py",
            "tests/gateway/state/test_sessions.py",
            "tests/gateway/streams",
            "tests/gateway/targets",
            "tests/test_docs.py",
        ),
    ),
)
