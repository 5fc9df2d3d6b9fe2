"""A plug-in for `llm` that knows the models of a gateway: a small distribution that PYTHONPATH shows it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

_MODULE: Final = """\
import json
import os

import llm
from llm.default_plugins import openai_models

_GIVEN = json.loads({given!r})


@llm.hookimpl
def register_models(register):
    for name in _GIVEN["models"]:
        made = []
        for kind in (openai_models.Chat, openai_models.AsyncChat):
            model = kind("wireglot/" + name, model_name=name, api_base=_GIVEN["base"], supports_tools=True)
            model.key = os.environ.get("WIREGLOT_KEY")
            made.append(model)
        register(*made)
"""
_METADATA: Final = "Metadata-Version: 2.1\nName: wireglot-for-llm\nVersion: 1\n"
_ENTRY_POINTS: Final = "[llm]\nwireglot = wireglot_for_llm\n"


def plugin_files(base: str, models: Sequence[str]) -> dict[str, str]:
    """By their names below a folder of the path."""
    given = json.dumps({"base": base, "models": list(models)})
    return {
        "wireglot_for_llm.py": _MODULE.format(given=given),
        "wireglot_for_llm-1.dist-info/METADATA": _METADATA,
        "wireglot_for_llm-1.dist-info/entry_points.txt": _ENTRY_POINTS,
    }
