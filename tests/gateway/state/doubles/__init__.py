"""Upstream doubles that mint reasoning state and refuse what the strictest real provider refuses.

Each is a real HTTP server on a free port and plays a scripted conversation with tools (see `script`). It
remembers every piece of state with the account and the exact content it was given out with.
"""

from tests.gateway.state.doubles.claude import Claude
from tests.gateway.state.doubles.gemini import SKIP, Gemini
from tests.gateway.state.doubles.kimi import Kimi
from tests.gateway.state.doubles.openai import OpenAi
from tests.gateway.state.doubles.server import Double, Minted, Recorded, Said

__all__ = ["SKIP", "Claude", "Double", "Gemini", "Kimi", "Minted", "OpenAi", "Recorded", "Said"]
