"""A search that nobody could run, as a client of the Messages wire reads it."""

import pytest

from wireglot_core.dialects.anthropic.surface import failed_search
from wireglot_core.dialects.context import Context
from wireglot_core.ir.content import Foreign, Message, Text
from wireglot_core.ir.request import HostedTool, Request, Tool


def hosted(kind: str) -> HostedTool:
    return HostedTool(kind, Foreign("anthropic", kind, {}))


@pytest.mark.parametrize(
    ("tools", "name", "given"),
    [
        ((hosted("web_search"),), "web_search", "query"),
        ((hosted("web_search"), hosted("web_fetch")), "web_search", "query"),
        ((hosted("web_fetch"),), "web_fetch", "url"),
        ((hosted("web_fetch"), Tool("f")), "web_search", "query"),
    ],
)
def test_a_search_that_failed_is_a_call_its_error_and_a_word(tools, name, given):
    request = Request("m", (Message("user", (Text("Tides?"),)),), tools)
    call, result, word = failed_search(request, "no key", Context())
    assert isinstance(call, Foreign)
    assert isinstance(result, Foreign)
    identifier = call.value["id"]
    assert identifier.startswith("srvtoolu_")
    other = failed_search(Request("m", ()), "no key", Context())[0]
    assert isinstance(other, Foreign)
    assert identifier != other.value["id"]
    use = {"type": "server_tool_use", "id": identifier, "name": name, "input": {given: "Tides?"}}
    caller = {"caller": {"type": "direct"}}
    assert call == Foreign("anthropic", "server_tool_use", use | caller)
    kind = f"{name}_tool_result"
    error = {"type": f"{kind}_error", "error_code": "unavailable"}
    failed = {"type": kind, "tool_use_id": identifier, "content": error}
    assert result == Foreign("anthropic", kind, failed | caller)
    assert word == Text("The web was not searched: no key.")
