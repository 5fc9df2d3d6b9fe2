"""What the inspector's page asks for: verb -> who answers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from wireglot.gateway.inspector.ask_page import AskPage, Submit
from wireglot.gateway.inspector.dashboard_page import DashboardPage, Rows
from wireglot.gateway.inspector.key_pages import KeyPages
from wireglot.gateway.inspector.setup_page import setup
from wireglot.gateway.inspector.translate_page import TranslatePage
from wireglot.gateway.request.viewer import InspectorHandler
from wireglot.gateway.state.keys.admin import AdminPages
from wireglot.gateway.state.state import State
from wireglot.gateway.targets.health import Health


def inspector_handlers(
    state: State,
    admin: AdminPages,
    health: Health,
    scrape: Callable[[], Awaitable[bytes]],
    submit: Submit,
    rows: Rows | None = None,
) -> Mapping[str, InspectorHandler]:
    ledger = state.engine.ledger
    return {
        "translate": TranslatePage().translate,
        "setup": setup,
        "ask": AskPage(submit).ask,
        "dashboard": DashboardPage(state.ledger, ledger, health, scrape, rows).dashboard,
        **KeyPages(admin, state.engine).handlers,
    }
