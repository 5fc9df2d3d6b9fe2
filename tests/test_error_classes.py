"""The exceptions that Wireglot raises on purpose."""

from collections.abc import Iterator

from wireglot import kimi
from wireglot_core.ir.errors import ClientFault, StrictLoss, Unsupported, UpstreamFault, WireglotError

CODES: dict[type[WireglotError], str] = {
    WireglotError: "WIREGLOT_ERROR",
    ClientFault: "CLIENT_FAULT",
    StrictLoss: "STRICT_LOSS",
    UpstreamFault: "UPSTREAM_FAULT",
    Unsupported: "UNSUPPORTED",
    kimi.KimiConfigError: "KIMI_CONFIG_ERROR",
    kimi.KimiApiError: "KIMI_API_ERROR",
}


def below(kind: type[WireglotError]) -> Iterator[type[WireglotError]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from below(inner)


def test_every_error_has_a_code_of_its_own_whatever_adapter_raised_it():
    """[D] R-R-08: one check of `code` serves the library, the adapter and the gateway."""
    assert {kind: kind("it failed").code for kind in CODES} == CODES
    for kind in below(WireglotError):
        code = getattr(kind, "code", "")
        assert code == code.upper(), kind
