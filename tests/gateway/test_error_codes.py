"""The page of error codes."""

from __future__ import annotations

from tools.error_codes import CODES, errors_page, found_codes


def test_every_code_in_the_source_is_told_with_what_to_do() -> None:
    """[M4] A code that nobody explains, or an explanation of none, fails here."""
    page = errors_page()
    assert {"upstream_auth_failed", "model_not_found", "not_served", "insufficient_quota"} <= found_codes()
    for code, (status, when, fix) in CODES.items():
        assert f"| `{code}` | {status} | {when} | {fix} |" in page
        assert all((status, when, fix))
