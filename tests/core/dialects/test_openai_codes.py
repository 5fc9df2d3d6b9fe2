"""What OpenAI's error codes mean, whatever the status beside them is."""

from typing import get_args

import pytest
from openai.types.responses.response_error import ResponseError

from wireglot_core.dialects.registry import dialect

DOCUMENTED: tuple[str, ...] = get_args(ResponseError.model_fields["code"].annotation)
"""By OpenAI's own SDK."""


def kind_of(name: str, code: str, status: int = 500) -> str:
    error = dialect(name).parse_error({"error": {"code": code, "message": "m", "type": "x"}}, status)
    assert error is not None
    return error.kind


def expected(code: str) -> str:
    """By the words of the code: another attempt with the same picture fails alike, and so on."""
    if "policy" in code or code == "content_filter":
        return "content_policy"
    if "image" in code or code in ("invalid_prompt", "invalid_encrypted_content"):
        return "invalid_request"
    for word, kind in (
        ("_not_found", "not_found"),
        ("timeout", "timeout"),
        ("rate_limit", "rate_limit"),
        ("billing", "billing"),
        ("usage_", "billing"),
        ("residency", "permission"),
    ):
        if word in code:
            return kind
    return {"slow_down": "overloaded", "deploymentnotfound": "not_found"}.get(code.lower(), "server")


OTHERS = (
    *("billing_hard_limit_reached", "billing_not_active", "usage_not_included", "usage_limit_reached"),
    *("content_filter", "cyber_policy", "invalid_encrypted_content", "previous_response_not_found"),
    *("response_not_found", "conversation_not_found", "item_not_found", "slow_down", "DeploymentNotFound"),
)
"""Of its other endpoints, of Codex's backend and of Azure."""


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses"])
def test_every_code_has_the_meaning_of_its_words(name: str) -> None:
    assert len(DOCUMENTED) > 15
    wrong = {code: kind_of(name, code) for code in (*DOCUMENTED, *OTHERS)}
    assert wrong == {code: expected(code) for code in (*DOCUMENTED, *OTHERS)}


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses"])
def test_a_code_that_nobody_knows_means_what_its_status_says(name: str) -> None:
    assert kind_of(name, "never_heard_of", 500) == "server"
    assert kind_of(name, "never_heard_of", 404) == "not_found"
