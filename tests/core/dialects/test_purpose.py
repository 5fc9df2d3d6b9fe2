"""What a request is for, by the headers of each vendor's clients."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.tiers import rows
from wireglot_core.dialects.registry import surface, surfaces
from wireglot_core.ir.purpose import NO_FACTS, PURPOSES, RequestFacts, client_word

# Claude Code 2.1.326 with CLAUDE_CODE_GATEWAY_HINT_HEADERS=1, and Codex 0.169.0, as they were recorded.
CLAUDE_MAIN = {
    "user-agent": "claude-cli/2.1.326 (external, sdk-cli)",
    "x-app": "cli",
    "x-claude-code-session-id": "7ccbbd3c-739f-4ef7-82bf-e35eb76e99b2",
    "x-claude-1p-request-class": "main",
    "x-claude-code-prompt-id": "de573c8d-bfdb-46d4-9530-50f0fdd9edb4",
    "x-claude-code-request-class": "main",
}
CLAUDE_AGENT = CLAUDE_MAIN | {
    "x-claude-1p-request-class": "blocking-subagent",
    "x-claude-code-agent-id": "a5d6b22b3c037095f",
    "x-claude-code-agent-type": "Explore",
    "x-claude-code-request-class": "subagent",
}
CLAUDE_TITLE = CLAUDE_MAIN | {
    "x-claude-1p-request-class": "summary-extraction",
    "x-claude-code-request-class": "auxiliary",
}
CLAUDE_COMPACTION = CLAUDE_MAIN | {
    "x-claude-code-compaction": "manual",
    "x-claude-code-request-class": "compaction",
}
CLAUDE_AGENT_WITHOUT_HINTS = {"x-app": "cli", "x-claude-code-agent-id": "a081b7366821ee04f"}
THREAD, PARENT = "01a1ecc7-a4a8-7c51-8f04-641191f2ea20", "01a1ecc7-a388-7311-90da-b37739733eeb"
TURN = '{"installation_id":"eb94","agent_name":"/root","window_number":0,"request_kind":"turn"}'
CODEX_MAIN = {"session-id": PARENT, "thread-id": PARENT, "x-codex-turn-metadata": TURN}
CODEX_AGENT = CODEX_MAIN | {
    "thread-id": THREAD,
    "x-codex-parent-thread-id": PARENT,
    "x-openai-subagent": "collab_spawn",
}
OPENCODE_AGENT = {"x-session-affinity": "ses_2", "x-session-id": "ses_2", "x-parent-session-id": "ses_1"}


@rows(
    ("dialect", "headers", "facts"),
    [
        ("anthropic", {}, NO_FACTS),
        ("anthropic", CLAUDE_MAIN, RequestFacts("main", "main")),
        (
            "anthropic",
            CLAUDE_AGENT,
            RequestFacts("subagent", "subagent", "Explore", "a5d6b22b3c037095f"),
        ),
        (
            "anthropic",
            CLAUDE_AGENT | {"x-claude-code-parent-agent-id": "a1"},
            RequestFacts("subagent", "subagent", "Explore", "a5d6b22b3c037095f", "a1"),
        ),
        ("anthropic", CLAUDE_COMPACTION, RequestFacts("compaction", "compaction")),
        ("anthropic", CLAUDE_AGENT_WITHOUT_HINTS, RequestFacts("subagent", agent_id="a081b7366821ee04f")),
        ("anthropic", CLAUDE_TITLE, RequestFacts("background", "summary-extraction")),
        # The safety checks of auto mode: the user waits for them.
        (
            "anthropic",
            CLAUDE_MAIN | {"x-claude-code-request-class": "auxiliary"},
            RequestFacts("auxiliary", "auxiliary"),
        ),
        ("anthropic", {"x-claude-code-request-class": "auxiliary"}, RequestFacts("auxiliary", "auxiliary")),
        (
            "anthropic",
            CLAUDE_AGENT | {"x-claude-1p-request-class": "background-task"},
            RequestFacts("subagent", "subagent", "Explore", "a5d6b22b3c037095f"),
        ),
        (
            "anthropic",
            CLAUDE_MAIN | {"x-claude-code-request-class": "side_reply"},
            RequestFacts("main", "side_reply"),
        ),
        (
            "anthropic",
            CLAUDE_AGENT | {"x-claude-code-request-class": "workflow"},
            RequestFacts("subagent", "workflow", "Explore", "a5d6b22b3c037095f"),
        ),
        ("anthropic", {"x-claude-code-request-class": "of tomorrow"}, RequestFacts("", "of_tomorrow")),
        ("anthropic", OPENCODE_AGENT, RequestFacts("subagent", agent_id="ses_2", parent_id="ses_1")),
        ("openai-responses", {}, NO_FACTS),
        ("openai-responses", CODEX_MAIN, RequestFacts("main", "turn")),
        ("openai-responses", CODEX_AGENT, RequestFacts("subagent", "turn", "collab_spawn", THREAD, PARENT)),
        (
            "openai-responses",
            CODEX_AGENT | {"x-openai-subagent": "review"},
            RequestFacts("subagent", "turn", "review", THREAD, PARENT),
        ),
        (
            "openai-responses",
            CODEX_AGENT | {"x-openai-subagent": "memory_consolidation"},
            RequestFacts("background", "turn", "memory_consolidation", THREAD, PARENT),
        ),
        (
            "openai-responses",
            {"x-codex-turn-metadata": '{"request_kind":"compaction"}'},
            RequestFacts("compaction", "compaction"),
        ),
        (
            "openai-responses",
            {"x-codex-turn-metadata": '{"request_kind":"of_tomorrow"}'},
            RequestFacts("background", "of_tomorrow"),
        ),
        ("openai-responses", {"x-codex-turn-metadata": "no JSON"}, NO_FACTS),
        ("openai-responses", {"x-openai-subagent": "compact"}, RequestFacts("compaction", agent="compact")),
        ("openai-chat", CLAUDE_AGENT, NO_FACTS),
        ("openai-chat", OPENCODE_AGENT, RequestFacts("subagent", agent_id="ses_2", parent_id="ses_1")),
        ("gemini", OPENCODE_AGENT, RequestFacts("subagent", agent_id="ses_2", parent_id="ses_1")),
        ("gemini", {"user-agent": "GeminiCLI/0.61.0/gemini-3-pro (linux; x64)"}, NO_FACTS),
    ],
)
def test_headers_say_what_a_request_is_for(
    dialect: str, headers: dict[str, str], facts: RequestFacts
) -> None:
    assert surface(dialect).client.facts(headers) == facts


HEADERS = sorted({*CLAUDE_AGENT, *CODEX_AGENT, *OPENCODE_AGENT, "x-claude-code-parent-agent-id"})


@given(st.dictionaries(st.sampled_from(HEADERS), st.text(max_size=300)))
def test_facts_are_short_printable_words_whatever_a_client_sends(headers: dict[str, str]) -> None:
    for each in surfaces():
        facts = each.client.facts(headers)
        assert facts.purpose in ("", *PURPOSES)
        for text in (facts.word, facts.agent, facts.agent_id, facts.parent_id):
            assert len(text) <= 64
            assert all("!" <= character <= "~" for character in text)


@rows(
    ("given", "word"),
    [
        (None, ""),
        ("", ""),
        ("  Explore\t", "Explore"),
        ("general purpose", "general_purpose"),
        ("caf\u00e9\x00\n", "caf_"),
        ("a" * 65, "a" * 64),
        (" " * 200 + "late", ""),
    ],
)
def test_a_word_of_a_client_is_bounded(given: str | None, word: str) -> None:
    assert client_word(given) == word
