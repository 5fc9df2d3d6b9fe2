"""Every check, in the order in which they are told. A new one is a function, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from wireglot.cli.doctor.case import Case
from wireglot.cli.doctor.checks.clients import look_at_clients
from wireglot.cli.doctor.checks.clock import look_at_clock
from wireglot.cli.doctor.checks.configuration import look_at_configuration
from wireglot.cli.doctor.checks.disk import look_at_disk
from wireglot.cli.doctor.checks.files import look_at_files
from wireglot.cli.doctor.checks.keys import look_at_keys
from wireglot.cli.doctor.checks.network import look_at_network
from wireglot.cli.doctor.checks.port import look_at_port
from wireglot.cli.doctor.checks.prices import look_at_prices
from wireglot.cli.doctor.checks.safety import look_at_safety
from wireglot.cli.doctor.checks.store import look_at_store
from wireglot.cli.doctor.checks.versions import look_at_versions
from wireglot.cli.doctor.finding import Finding


class Check(NamedTuple):
    title: str
    look: Callable[[Case], Iterator[Finding]]
    needs_settings: bool = True
    """Whether it can look only where the configuration loads."""


CHECKS: Final = (
    Check("versions", look_at_versions, needs_settings=False),
    Check("configuration", look_at_configuration, needs_settings=False),
    Check("keys", look_at_keys),
    Check("network", look_at_network),
    Check("clock", look_at_clock),
    Check("store", look_at_store),
    Check("disk", look_at_disk),
    Check("port", look_at_port),
    Check("safety", look_at_safety),
    Check("files", look_at_files, needs_settings=False),
    Check("prices", look_at_prices),
    Check("clients", look_at_clients, needs_settings=False),
)
