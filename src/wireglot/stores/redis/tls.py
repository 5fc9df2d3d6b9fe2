"""How a `rediss://` server proves who it is: the driver's `ssl_...` options, read once.

The driver would read the authorities anew for every connection, on the loop: longer than a call may take.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from typing import Final

from wireglot.stores.base import StoreUnusable

_FILES: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_OPTIONS: Final = (
    *_FILES, "ssl_ca_path", "ssl_ca_data", "ssl_cert_reqs", "ssl_check_hostname", "ssl_password",
)  # fmt: skip
_CHECKS: Final = {"required": ssl.CERT_REQUIRED, "optional": ssl.CERT_OPTIONAL, "none": ssl.CERT_NONE}
_FALSE: Final = ("0", "f", "false", "n", "no")
"""As the driver reads it."""


def tls_context(options: Mapping[str, str], *, encrypted: bool) -> ssl.SSLContext | None:
    """Of the options that begin with `ssl_`. Raises StoreUnusable where one makes no sense."""
    named = [name for name in options if name.startswith("ssl_")]
    if not encrypted:
        if named:
            raise StoreUnusable("store.shared: ssl_... needs a rediss:// URL; redis:// is not encrypted")
        return None
    if not set(named) <= set(_OPTIONS):
        raise StoreUnusable(f"store.shared: of the options ssl_... these are known: {', '.join(_OPTIONS)}")
    check = options.get("ssl_cert_reqs", "required")
    if check not in _CHECKS:
        raise StoreUnusable(f"store.shared: ssl_cert_reqs must be one of {', '.join(_CHECKS)}")
    for name in _FILES:
        if name in options and not os.access(options[name], os.R_OK):
            raise StoreUnusable(f"store.shared: the file that {name} names cannot be read")
    try:
        context = ssl.create_default_context(
            cafile=options.get("ssl_ca_certs"),
            capath=options.get("ssl_ca_path"),
            cadata=options.get("ssl_ca_data"),
        )
        if "ssl_certfile" in options:
            secret = options.get("ssl_password", "")
            context.load_cert_chain(options["ssl_certfile"], options.get("ssl_keyfile"), lambda: secret)
    except (OSError, ValueError):
        raise StoreUnusable("store.shared: a certificate or key cannot be used") from None
    by_name = options.get("ssl_check_hostname", "true").lower() not in _FALSE
    context.check_hostname = by_name and check != "none"
    context.verify_mode = _CHECKS[check]
    return context
