"""Codec of OpenAI's Responses API: `POST /v1/responses`."""

from wireglot_core.dialects.openai_responses.dialect import DIALECT

__all__ = ["DIALECT"]
