"""What the core knows of a connection that failed is what the client of HTTP reports."""

from typing import get_args

from wireglot.http.transport import TransportProblem
from wireglot_core.ir.failures import ConnectionProblem


def test_every_problem_of_a_connection_has_its_blame() -> None:
    assert set(get_args(TransportProblem)) == set(get_args(ConnectionProblem))
