"""Secrets that no header can hold: http.client would quote them whole."""

from collections.abc import Iterator

import pytest

from tests.cli.running import complaint, run
from tests.tiers import rows
from wireglot.testing.live_gateway import LiveGateway

KEYED = f'[providers.demo]\n[keys]\nme = "sha256:{"0" * 64}"\n'
ODD = ("geheim\nx-evil: 1", "geheim\n folded", "geheim→", "geheim ")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with LiveGateway(KEYED) as gateway:
        yield gateway.url


@rows("secret", ODD)
@rows(
    ("variable", "arguments"),
    [
        ("WIREGLOT_KEY", ("run", "--env", "openai", "--url", "{url}", "--", "true")),
        ("WIREGLOT_KEY", ("usage", "--url", "{url}")),
        ("WIREGLOT_ADMIN_SECRET", ("usage", "--admin", "--url", "{url}")),
        ("WIREGLOT_ADMIN_SECRET", ("keys", "list", "--url", "{url}")),
        ("--key", ("smoke", "--url", "{url}", "--key", "{secret}")),
        ("--api-key", ("usage", "--url", "{url}", "--api-key", "{secret}")),
    ],
)
def test_a_secret_that_no_header_can_hold_is_reported_by_its_place_and_not_printed(
    variable: str, arguments: tuple[str, ...], secret: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not variable.startswith("-"):
        monkeypatch.setenv(variable, secret)
    said = complaint(run(*(each.format(url=url, secret=secret) for each in arguments)))
    assert said.startswith(f"{variable}: expected a key in plain ASCII")
    assert "geheim" not in said
