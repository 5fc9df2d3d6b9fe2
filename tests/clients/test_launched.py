"""What is tried with `wireglot run`: whatever the user's own files say, the gateway is called."""

from __future__ import annotations

from clients.launched import LAUNCHED, SETTINGS
from clients.seat import NOWHERE
from wireglot.cli.run.clients import CLIENTS

_WITHOUT_FILE = {"copilot"}
"""Its base URL can only be set by variables."""


def test_each_client_has_another_base_url_in_its_own_files() -> None:
    led: set[str] = set()
    for launched in LAUNCHED:
        files = {**SETTINGS, **launched.home, **launched.project}
        own = [name for name in files if name in launched.home or name in launched.project]
        named = launched.package.name.partition("-")[0]
        own += [name for name in SETTINGS if named in name]
        if any(NOWHERE in files[name] for name in own):
            led.add(launched.name)
    assert set(CLIENTS) - led == _WITHOUT_FILE
