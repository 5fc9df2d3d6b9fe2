"""What both of Google's dialects share on the wire: the key's header and the list of models."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from wireglot.probe.reply import At
from wireglot.probe.wires.wire import Wire


class GoogleWire(Wire):
    key_header = ("x-goog-api-key", "")
    key_refusals = (400, 401, 403)

    def models(self, document: Any) -> list[str]:
        names = []
        for entry in At(document).get("models").each():
            name = entry.text("name", filled=True)
            if not name.startswith("models/"):
                raise entry.get("name").broken("a name that begins with models/")
            entry.get("supportedGenerationMethods").each()
            names.append(name.removeprefix("models/"))
        return names

    def next_page(self, document: Any) -> str:
        at = At(document)
        token = at.text("nextPageToken") if at.has("nextPageToken") else ""
        return f"?pageToken={quote(token, safe='')}" if token else ""
