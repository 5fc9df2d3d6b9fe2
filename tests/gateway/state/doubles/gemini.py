"""Gemini 3: a signature on the first call of each step, demanded back on that very part."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from tests.gateway.state.doubles.script import Call, Step, conversation_of
from tests.gateway.state.doubles.server import Double, Refused, halves
from wireglot_core.wire.json import encode, encode_text

SKIP = "skip_thought_signature_validator"
_COUNT = (
    "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn."
)
_ORDER = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response "
    "turn."
)
_CORRUPTED = "Corrupted thought signature."


class Gemini(Double):
    """Its signatures are good for one account and one model."""

    def account_of(self, headers: dict[str, str]) -> str:
        return headers.get("x-goog-api-key", "")

    def streams(self, path: str, body: dict[str, Any]) -> bool:
        return urlsplit(path).path.endswith(":streamGenerateContent")

    def error(self, refused: Refused) -> dict[str, Any]:
        status = "UNAVAILABLE" if refused.status == 503 else "INVALID_ARGUMENT"
        error = {"code": refused.status, "message": refused.message, "status": status}
        return {"error": error}

    def answer(self, path: str, account: str, body: dict[str, Any]) -> dict[str, Any]:
        contents = body["contents"]
        model = urlsplit(path).path.rpartition("/")[2].partition(":")[0]
        account = f"{account} {model}"
        self._check_turns(contents)
        self._check_signatures(contents, account)
        text = "".join(part.get("text", "") for part in contents[0]["parts"])
        conversation = conversation_of(text)
        answers = [content["parts"] for content in contents if content.get("role") == "model"]
        for number, quoted in enumerate(answers):
            said = "".join(part.get("text", "") for part in quoted if not part.get("thought"))
            calls = [part["functionCall"] for part in quoted if "functionCall" in part]
            self.compare(number, conversation, said, [Call(call["name"], call["args"]) for call in calls])
        step = self.script.step(conversation, len(answers))
        thoughts = body.get("generationConfig", {}).get("thinkingConfig", {}).get("includeThoughts")
        parts = self._parts(step, account, bool(thoughts))
        self.say(step, tuple(part["functionCall"]["id"] for part in parts if "functionCall" in part))
        return {
            "candidates": [
                {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
            ],
            "usageMetadata": {
                "promptTokenCount": 20,
                "candidatesTokenCount": 5,
                "thoughtsTokenCount": 7,
                "totalTokenCount": 32,
            },
            "modelVersion": model,
            "responseId": secrets.token_hex(8),
        }

    def _parts(self, step: Step, account: str, thoughts: bool) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        if thoughts:
            parts.append({"text": step.thinking, "thought": True})
        if step.text:
            parts.append({"text": step.text})
        for index, call in enumerate(step.calls):
            identifier = secrets.token_hex(4)
            part: dict[str, Any] = {
                "functionCall": {"id": identifier, "name": call.name, "args": call.arguments}
            }
            if index == 0:
                part["thoughtSignature"] = self.mint(account, "call", _bound(part["functionCall"]), step.key)
            parts.append(part)
        if not step.calls and step.number % 8 == 3:
            # A final answer may be signed too; it need not come back.
            parts[-1]["thoughtSignature"] = self.mint(account, "text", step.text, step.key)
        return parts

    def frames(self, answer: dict[str, Any], body: dict[str, Any]) -> Iterable[bytes]:
        parts: list[dict[str, Any]] = []
        for part in answer["candidates"][0]["content"]["parts"]:
            if "text" not in part:
                parts.append(part)
                continue
            thought = {"thought": True} if part.get("thought") else {}
            parts += [{"text": piece, **thought} for piece in halves(part["text"])]
            if "thoughtSignature" in part:
                parts.append({"text": "", "thoughtSignature": part["thoughtSignature"]})
        about = {key: answer[key] for key in ("modelVersion", "responseId", "usageMetadata")}
        for index, part in enumerate(parts):
            candidate: dict[str, Any] = {"content": {"role": "model", "parts": [part]}, "index": 0}
            if index == len(parts) - 1:
                candidate["finishReason"] = "STOP"
            yield b"data: " + encode({"candidates": [candidate], **about}) + b"\r\n\r\n"

    # Rules

    def _check_turns(self, contents: list[dict[str, Any]]) -> None:
        if not contents or contents[-1].get("role") == "model":
            raise Refused("Please ensure that single turn requests end with a user role.")
        pending: list[dict[str, Any]] = []
        before = ""
        for content in contents:
            if not content.get("parts"):
                raise Refused("Unable to submit request because it must include at least one parts field.")
            responses = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
            calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
            if content.get("role") == "model":
                if calls and before == "model":
                    raise Refused(_ORDER)
                if responses or pending:
                    raise Refused(_COUNT)
                pending = calls
            else:
                self._check_responses(pending, responses, content["parts"])
                pending = []
            before = content.get("role", "user")

    def _check_responses(
        self, calls: list[dict[str, Any]], responses: list[dict[str, Any]], parts: list[dict[str, Any]]
    ) -> None:
        if len(calls) != len(responses):
            raise Refused(_COUNT)
        if any("functionResponse" not in part for part in parts[: len(responses)]):
            raise Refused(_COUNT)
        for call, response in zip(calls, responses, strict=True):
            if call["name"] != response["name"] or call.get("id") != response.get("id"):
                raise Refused(f"Function response for {response['name']} does not match its function call.")
            if call["args"]["key"] not in encode_text(response["response"]):
                raise Refused(f"The result of another call came for {call['name']}.")

    def _check_signatures(self, contents: list[dict[str, Any]], account: str) -> None:
        current = max(
            (
                index
                for index, content in enumerate(contents)
                # Text behind the results of a step does not begin a new turn.
                if content.get("role") != "model"
                and not any("functionResponse" in part for part in content["parts"])
            ),
            default=0,
        )
        for index, content in enumerate(contents):
            if content.get("role") == "model":
                self._check_step(content["parts"], account, index, index > current)

    def _check_step(self, parts: list[dict[str, Any]], account: str, index: int, current: bool) -> None:
        first = True
        text = ""
        for position, part in enumerate(parts):
            signature = part.get("thoughtSignature")
            call = part.get("functionCall")
            if not part.get("thought"):
                text += part.get("text", "")
            if signature is not None:
                bound = _bound(call) if call is not None else text
                self._check_signature(signature, account, "call" if call is not None else "text", bound)
            elif call is not None and first:
                place = f"contents.{index}.parts.{position}"
                if current:
                    raise Refused(
                        "Function call is missing a thought_signature in functionCall parts. This is required "
                        "for tools to work correctly, and missing thought_signature may lead to degraded model "
                        f"performance. Additional data, function call `default_api:{call['name']}` , position "
                        f"{position + 1}. Please refer to "
                        "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
                    )
                if self.own_step(call["args"]["key"]):
                    self.missing.append(f"{place}: the signature of {call['name']}")
            first = first and call is None

    def _check_signature(self, signature: str, account: str, kind: str, bound: str) -> None:
        if signature == SKIP:
            self.bypasses.append(bound)
            return
        try:
            data = base64.b64decode(signature.replace("-", "+").replace("_", "/"), validate=True)
        except (binascii.Error, ValueError):
            raise Refused(
                "Invalid value at 'thought_signature' (TYPE_BYTES), Base64 decoding failed."
            ) from None
        minted = self.known(base64.b64encode(data).decode(), account)
        if minted is None or (minted.kind, minted.bound) != (kind, bound):
            raise Refused(_CORRUPTED)


def _bound(call: dict[str, Any]) -> str:
    return encode_text([call["name"], dict(sorted(call["args"].items()))])
