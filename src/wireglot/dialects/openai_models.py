"""Lists of models as OpenAI's two dialects have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from wireglot.dialects.listed_model import ListedModel, Query
from wireglot.dialects.surface import ModelLists


def render_list(listing: Sequence[ListedModel], query: Query) -> dict[str, Any]:
    return {"object": "list", "data": [render_model(model) for model in listing]}


def render_model(model: ListedModel) -> dict[str, Any]:
    return {"id": model.id, "object": "model", "created": 0, "owned_by": model.provider}


MODELS: Final = ModelLists(render_list=render_list, render_model=render_model)
