"""How the server proves who it is: `sslmode`, `sslrootcert` and what goes with them, in libpq's words.

Whoever names an authority, or says verify-ca or verify-full, gets a context of ours: it knows the system's
authorities, which the driver does not, and its faults can be told in plain words. Everything else is left to
the driver: `require` encrypts and verifies nothing, and without `sslmode` the server decides, as with libpq.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from wireglot.stores.base import StoreUnusable

_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_FILES: Final = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
_SYSTEM: Final = "system"
"""As libpq 16 has it: the system's authorities, in place of a file."""
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def tls_context(options: Mapping[str, str]) -> ssl.SSLContext | None:
    """Raises StoreUnusable where an option makes no sense or its file cannot be used."""
    authority = options.get("sslrootcert", "")
    mode = options.get("sslmode", "verify-full" if authority else "")
    if mode and mode not in _MODES:
        raise StoreUnusable(f"store.url: sslmode must be one of {', '.join(_MODES)}")
    if authority and mode in ("disable", "allow", "prefer"):
        raise StoreUnusable(f"store.url: sslrootcert has no effect with sslmode={mode}; use verify-full")
    for name in _FILES:
        path = options.get(name)
        if path and path != _SYSTEM and not os.access(path, os.R_OK):
            raise StoreUnusable(f"store.url: the file that {name} names cannot be read")
    if not mode.startswith("verify") and not authority:
        return None
    # libpq's rule: with an authority, `require` verifies the certificate, but not its name.
    return _verifying(options, authority or _usual_authority(), check_name=mode == "verify-full")


def _verifying(options: Mapping[str, str], authority: str, *, check_name: bool) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=None if authority == _SYSTEM else authority)
        if options.get("sslcrl"):
            context.load_verify_locations(cafile=options["sslcrl"])
            context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_CHAIN
        if options.get("sslcert"):
            secret = options.get("sslpassword", "")
            context.load_cert_chain(options["sslcert"], options.get("sslkey") or None, lambda: secret)
    except (OSError, ValueError):
        raise StoreUnusable("store.url: a certificate, key or list of revoked ones cannot be used") from None
    context.check_hostname = check_name
    context.minimum_version = _version(options, "ssl_min_protocol_version", ssl.TLSVersion.TLSv1_2)
    context.maximum_version = _version(options, "ssl_max_protocol_version", ssl.TLSVersion.MAXIMUM_SUPPORTED)
    context.set_alpn_protocols(["postgresql"])
    return context


def _version(options: Mapping[str, str], name: str, default: ssl.TLSVersion) -> ssl.TLSVersion:
    if not options.get(name):
        return default
    if options[name] not in _VERSIONS:
        raise StoreUnusable(f"store.url: {name} must be one of {', '.join(_VERSIONS)}")
    return _VERSIONS[options[name]]


def _usual_authority() -> str:
    """libpq's places before the system's."""
    named = os.environ.get("PGSSLROOTCERT", "")
    own = Path("~/.postgresql/root.crt").expanduser()
    return named or (str(own) if own.is_file() else _SYSTEM)
