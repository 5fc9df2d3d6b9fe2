"""What each route is for: one row for each. A route without a row, or a row without a route, is a failure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tools.http_api.shapes import listed, text, whole
from wireglot.gateway.state.ledger.report import DEFAULT_GROUPS, DEFAULT_START, GROUPS

MESSAGES: Final = "Anthropic Messages"
CHAT: Final = "OpenAI Chat Completions"
RESPONSES: Final = "OpenAI Responses"
CONVERSATIONS: Final = "OpenAI Conversations"
GEMINI: Final = "Gemini"
SIMPLE: Final = "Gemini, simplified"
ASSIST: Final = "Code Assist"
MODELS: Final = "Models"
OWN: Final = "Sessions, usage, losses"
ADMIN: Final = "Administration"
INSPECTOR: Final = "Inspector"
CONDITION: Final = "Operations"
PROBES: Final = "What clients probe"

TAGS: Final = {
    MESSAGES: "What Claude Code and Anthropic's SDKs speak.",
    CHAT: "What most SDKs and tools speak.",
    RESPONSES: "What Codex and OpenAI's newer SDKs speak; stored and in the background on every provider.",
    CONVERSATIONS: "Conversations that the gateway holds.",
    GEMINI: "What Gemini CLI and google-genai speak.",
    SIMPLE: "One turn at a time; the gateway holds the conversation.",
    ASSIST: "What Gemini CLI speaks after a Google login.",
    MODELS: "What can be asked for, in the shape of the dialect that asks.",
    OWN: "What the gateway knows of a caller's own requests.",
    ADMIN: "Client keys and the store, behind the admin secret.",
    INSPECTOR: "The page at `/inspector`, and what it asks for. Changes bring the token of the session.",
    CONDITION: "For balancers and Prometheus.",
    PROBES: "Small answers to what clients ask beside the API.",
}

_ANTHROPIC_DOCS: Final = "https://docs.claude.com/en/api/"
_OPENAI_DOCS: Final = "https://platform.openai.com/docs/api-reference/"
_GOOGLE_DOCS: Final = "https://ai.google.dev/api/"
_GEMINI_CLI: Final = "https://github.com/google-gemini/gemini-cli"

Query = tuple[dict[str, Any], ...]


class Told(msgspec.Struct, frozen=True):
    """`body` and `answer` name schemas; "": none, or the vendor's, whose reference is `vendor`."""

    id: str
    tag: str
    summary: str
    about: str = ""
    body: str = ""
    answer: str = ""
    status: int = 200
    query: Query = ()
    vendor: str = ""


def _parameter(name: str, schema: dict[str, Any], about: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": about, "schema": schema}


_LIMIT: Final = _parameter("limit", whole(minimum=1, maximum=100, default=20), "how many")
_PAGES: Final[Query] = (
    _LIMIT,
    _parameter("after", text(), "the last id of the page before"),
    _parameter("order", text(enum=["asc", "desc"], default="desc"), "oldest or newest first"),
)
_GROUP_BY: Final = _parameter(
    "group_by",
    listed(text(enum=list(GROUPS))),
    f"what it is added up by, with commas between; {DEFAULT_GROUPS} where nothing is said",
) | {"style": "form", "explode": False}
_USAGE: Final[Query] = (
    _GROUP_BY,
    _parameter(
        "start",
        text(default=DEFAULT_START),
        "unix seconds, YYYY-MM-DD (UTC), or a time ago: 90m, 12h, 7d, 4w",
    ),
    _parameter("end", text(), "the same; of a day its end"),
    _parameter("model", text(), "only this one"),
    _parameter("provider", text(), "only this one"),
    _parameter("session", text(), "only this one"),
)
_LISTS: Final[Query] = (
    _parameter("limit", whole(minimum=1), "Anthropic's clients: how many"),
    _parameter("after_id", text(), "Anthropic's clients: the last id of the page before"),
    _parameter("before_id", text(), "Anthropic's clients: the first id of the page after"),
    _parameter("pageSize", whole(minimum=0), "Gemini's clients: how many"),
    _parameter("pageToken", text(), "Gemini's clients: `nextPageToken` of the page before"),
)
ALT: Final = _parameter("alt", text(enum=["sse"]), "`sse`: server-sent events; without it a JSON array")

OPERATIONS: Final[dict[tuple[str, str, str], Told]] = {
    # Dialect, operation and verb.
    ("anthropic", "generate", ""): Told(
        "createMessage", MESSAGES, "Answer a conversation", vendor=_ANTHROPIC_DOCS + "messages"
    ),
    ("anthropic", "count", ""): Told(
        "countMessageTokens",
        MESSAGES,
        "Count the tokens of a request",
        vendor=_ANTHROPIC_DOCS + "messages-count-tokens",
    ),
    ("openai-chat", "generate", ""): Told(
        "createChatCompletion", CHAT, "Answer a conversation", vendor=_OPENAI_DOCS + "chat/create"
    ),
    ("openai-responses", "generate", ""): Told(
        "createResponse",
        RESPONSES,
        "Answer a conversation, stored or in the background if it is wished",
        vendor=_OPENAI_DOCS + "responses/create",
    ),
    ("openai-responses", "count", ""): Told(
        "countResponseTokens", RESPONSES, "Count the tokens of a request", vendor=_OPENAI_DOCS + "responses"
    ),
    ("openai-responses", "compact", "compact"): Told(
        "compactResponse", RESPONSES, "Make a conversation short", vendor=_OPENAI_DOCS + "responses"
    ),
    ("openai-responses", "state", "responses.get"): Told(
        "getResponse",
        RESPONSES,
        "A stored response, or its events again",
        query=(
            _parameter("stream", text(enum=["true", "false"]), "`true`: the events of a background response"),
            _parameter("starting_after", whole(minimum=0), "only events behind this sequence number"),
        ),
        vendor=_OPENAI_DOCS + "responses/get",
    ),
    ("openai-responses", "state", "responses.delete"): Told(
        "deleteResponse", RESPONSES, "Delete a stored response", vendor=_OPENAI_DOCS + "responses/delete"
    ),
    ("openai-responses", "state", "responses.cancel"): Told(
        "cancelResponse", RESPONSES, "Stop a background response", vendor=_OPENAI_DOCS + "responses/cancel"
    ),
    ("openai-responses", "state", "responses.input_items"): Told(
        "listInputItems",
        RESPONSES,
        "What a stored response was asked",
        query=_PAGES,
        vendor=_OPENAI_DOCS + "responses/input-items",
    ),
    ("openai-responses", "state", "conversations.create"): Told(
        "createConversation", CONVERSATIONS, "Begin a conversation", vendor=_OPENAI_DOCS + "conversations"
    ),
    ("openai-responses", "state", "conversations.get"): Told(
        "getConversation", CONVERSATIONS, "A conversation", vendor=_OPENAI_DOCS + "conversations"
    ),
    ("openai-responses", "state", "conversations.update"): Told(
        "updateConversation",
        CONVERSATIONS,
        "Change the metadata of a conversation",
        vendor=_OPENAI_DOCS + "conversations",
    ),
    ("openai-responses", "state", "conversations.delete"): Told(
        "deleteConversation", CONVERSATIONS, "Delete a conversation", vendor=_OPENAI_DOCS + "conversations"
    ),
    ("openai-responses", "state", "items.create"): Told(
        "createItems", CONVERSATIONS, "Add items to a conversation", vendor=_OPENAI_DOCS + "conversations"
    ),
    ("openai-responses", "state", "items.list"): Told(
        "listItems",
        CONVERSATIONS,
        "The items of a conversation",
        query=_PAGES,
        vendor=_OPENAI_DOCS + "conversations",
    ),
    ("openai-responses", "state", "items.get"): Told(
        "getItem", CONVERSATIONS, "One item", vendor=_OPENAI_DOCS + "conversations"
    ),
    ("openai-responses", "state", "items.delete"): Told(
        "deleteItem", CONVERSATIONS, "Delete one item", vendor=_OPENAI_DOCS + "conversations"
    ),
    ("gemini", "generate", "generateContent"): Told(
        "generateContent", GEMINI, "Answer a conversation", vendor=_GOOGLE_DOCS + "generate-content"
    ),
    ("gemini", "generate", "streamGenerateContent"): Told(
        "streamGenerateContent",
        GEMINI,
        "Answer a conversation, as a stream",
        query=(ALT,),
        vendor=_GOOGLE_DOCS + "generate-content",
    ),
    ("gemini", "count", "countTokens"): Told(
        "countTokens", GEMINI, "Count the tokens of a request", vendor=_GOOGLE_DOCS + "tokens"
    ),
    ("gemini-simple", "generate", ""): Told(
        "answerTurn",
        SIMPLE,
        "Answer one turn",
        "Answers and streams are Gemini's own.",
        body="SimpleRequest",
        vendor=_GOOGLE_DOCS + "generate-content",
    ),
    ("code-assist", "generate", "generateContent"): Told(
        "assistGenerateContent", ASSIST, "Answer a conversation", vendor=_GEMINI_CLI
    ),
    ("code-assist", "generate", "streamGenerateContent"): Told(
        "assistStreamGenerateContent",
        ASSIST,
        "Answer a conversation, as a stream",
        query=(ALT,),
        vendor=_GEMINI_CLI,
    ),
    ("code-assist", "count", "countTokens"): Told(
        "assistCountTokens", ASSIST, "Count the tokens of a request", vendor=_GEMINI_CLI
    ),
    ("code-assist", "assist", "loadCodeAssist"): Told(
        "loadCodeAssist", ASSIST, "The one tier that there is", vendor=_GEMINI_CLI
    ),
    ("code-assist", "assist", "onboardUser"): Told(
        "onboardUser", ASSIST, "Nothing to do: it is done", vendor=_GEMINI_CLI
    ),
    ("code-assist", "assist", "retrieveUserQuota"): Told(
        "retrieveUserQuota", ASSIST, "Full quotas", vendor=_GEMINI_CLI
    ),
    ("code-assist", "assist", "listExperiments"): Told(
        "listExperiments", ASSIST, "No experiments", vendor=_GEMINI_CLI
    ),
    ("code-assist", "assist", "fetchAdminControls"): Told(
        "fetchAdminControls", ASSIST, "No controls", vendor=_GEMINI_CLI
    ),
    ("code-assist", "assist", "getCodeAssistGlobalUserSetting"): Told(
        "getCodeAssistGlobalUserSetting", ASSIST, "No data is collected", vendor=_GEMINI_CLI
    ),
    ("code-assist", "assist", "setCodeAssistGlobalUserSetting"): Told(
        "setCodeAssistGlobalUserSetting",
        ASSIST,
        "No data is collected, whatever was asked for",
        vendor=_GEMINI_CLI,
    ),
    ("code-assist", "assist", "recordCodeAssistMetrics"): Told(
        "recordCodeAssistMetrics", ASSIST, "Taken, and thrown away unread", vendor=_GEMINI_CLI
    ),
    ("code-assist", "operation", "operations/onboarding"): Told(
        "getOnboarding", ASSIST, "The one operation there is: done", vendor=_GEMINI_CLI
    ),
    ("anthropic", "stub", "/api/hello"): Told("hello", PROBES, "What Claude Code warms its connection with"),
    ("anthropic", "stub", "/api/event_logging/batch"): Told(
        "takeEvents", PROBES, "Claude Code's own usage events: taken, and thrown away unread"
    ),
    ("anthropic", "stub", "/api/event_logging/v2/batch"): Told("takeEventsV2", PROBES, "The same"),
    # Whoever asks.
    ("", "models", ""): Told("listModels", MODELS, "The models that this caller may ask for", query=_LISTS),
    ("", "model", ""): Told("getModel", MODELS, "One of them"),
    # The gateway's own.
    ("", "state", "sessions.list"): Told(
        "listSessions",
        OWN,
        "Sessions and conversations, the last used first",
        answer="SessionList",
        query=(_LIMIT, _parameter("after", text(), "`after` of the page before")),
    ),
    ("", "state", "sessions.get"): Told("getSession", OWN, "One of them, with its items", answer="Session"),
    ("", "state", "sessions.delete"): Told(
        "deleteSession", OWN, "Forget one of them", answer="SessionDeleted"
    ),
    ("", "state", "usage"): Told(
        "getUsage", OWN, "What this caller used, added up", answer="Usage", query=_USAGE
    ),
    ("", "state", "losses.get"): Told(
        "getLosses",
        OWN,
        "What could not cross of a request",
        answer="Losses",
        about="By the answer's `x-wireglot-request-id`, for whoever sent the request. Kept for an hour.",
    ),
    ("", "admin", "keys.list"): Told("listKeys", ADMIN, "All client keys", answer="KeyList"),
    ("", "admin", "keys.create"): Told(
        "createKey",
        ADMIN,
        "Make a client key",
        "The key itself is told this once.",
        "KeyToMake",
        "NewKey",
        201,
    ),
    ("", "admin", "keys.get"): Told("getKey", ADMIN, "One client key", answer="Key"),
    ("", "admin", "keys.update"): Told(
        "updateKey", ADMIN, "Change a client key", body="KeyChange", answer="Key"
    ),
    ("", "admin", "keys.revoke"): Told("revokeKey", ADMIN, "Revoke a client key", answer="Key"),
    ("", "admin", "keys.rotate"): Told(
        "rotateKey", ADMIN, "A new key for the same caller", "It is told this once.", "KeyRotation", "NewKey"
    ),
    ("", "admin", "keys.delete"): Told(
        "deleteKey", ADMIN, "Delete a client key, with all that its caller stored", answer="Key"
    ),
    ("", "admin", "usage"): Told(
        "getAllUsage",
        ADMIN,
        "What all callers used, added up",
        answer="Usage",
        query=(*_USAGE, _parameter("key", text(), "only this client key")),
    ),
    ("", "admin", "store.stats"): Told("getStore", ADMIN, "What is stored, and how much", answer="Store"),
    ("", "admin", "callers.wipe"): Told(
        "wipeCaller",
        ADMIN,
        "Remove all that a caller stored",
        "Its usage stays, without the names of its sessions.",
        answer="Wiped",
    ),
    ("", "inspector", "page"): Told(
        "getInspector", INSPECTOR, "The page; its views are paths below this one"
    ),
    ("", "inspector", "asset"): Told("getInspectorFile", INSPECTOR, "A file of the page"),
    ("", "inspector", "session.get"): Told(
        "getInspectorSession", INSPECTOR, "Who may look, and the token for changes", answer="InspectorSession"
    ),
    ("", "inspector", "session.begin"): Told(
        "beginInspectorSession",
        INSPECTOR,
        "Sign in with the admin secret or a client key",
        "Sets a cookie. It needs no token.",
        body="SignIn",
        answer="InspectorSession",
    ),
    ("", "inspector", "session.end"): Told(
        "endInspectorSession", INSPECTOR, "Sign out", answer="InspectorSignedOut"
    ),
    ("", "inspector", "exchanges.list"): Told(
        "listExchanges",
        INSPECTOR,
        "Exchanges, the newest first",
        "Of all workers and machines, and those that were recorded before. A client key sees its own.",
        answer="ExchangeList",
        query=(
            _parameter("limit", whole(minimum=1, maximum=1000, default=100), "how many"),
            _parameter("before", text(), "the id that a page before told as `next`"),
            _parameter("client", text(), "only this program: `claude-code`"),
            _parameter("dialect", text(), "only clients of this dialect"),
            _parameter("model", text(), "as asked for, as answered, or `provider/model`"),
            _parameter("provider", text(), "only this one"),
            _parameter("status", text(), "a number, `4xx`, or `running`, `done`, `failed`, `left`"),
            _parameter("loss", text(), "a grade, a feature, or `any`"),
            _parameter("key", text(), "only this client key"),
            _parameter("session", text(), "only this conversation"),
            _parameter("q", text(), "a text in the row, or in the bodies where they were recorded"),
        ),
    ),
    ("", "inspector", "exchanges.get"): Told(
        "getExchange",
        INSPECTOR,
        "One exchange: all of it where it was recorded, else its row and losses",
        answer="TraceOrRow",
        query=(
            _parameter(
                "only",
                text(enum=["recorded", "told"]),
                "`recorded`: at once, without links; `told`: links, places and what streams amount to",
            ),
        ),
    ),
    ("", "inspector", "exchanges.export"): Told(
        "exportExchange", INSPECTOR, "A recorded exchange as a file", "What `wireglot trace` reads."
    ),
    ("", "inspector", "exchanges.image"): Told(
        "getExchangeImage",
        INSPECTOR,
        "A picture of a recorded exchange",
        "PNG, JPEG, GIF or WebP, by its bytes.",
        query=(
            _parameter("part", text(enum=["client", "upstream"], default="client"), "whose document"),
            _parameter("pointer", text(), "where its base64 is, as a JSON pointer"),
        ),
    ),
    ("", "inspector", "live"): Told(
        "followExchanges",
        INSPECTOR,
        "Exchanges as they come and end, as server-sent events",
        "`hello`, then a `row` whenever one changes; `dropped` tells how many were missed, `fleet` what is "
        "known of the other machines.",
    ),
    ("", "inspector", "conversations.list"): Told(
        "listInspectorConversations", INSPECTOR, "Exchanges by the session that their client names"
    ),
    ("", "inspector", "recording.get"): Told(
        "getRecording", INSPECTOR, "Whether bodies are recorded", answer="Recording"
    ),
    ("", "inspector", "recording.set"): Told(
        "setRecording",
        INSPECTOR,
        "Record all bodies for so many minutes; 0 stops it",
        body="ToRecord",
        answer="Recording",
    ),
    ("", "inspector", "replay"): Told(
        "replayExchange",
        INSPECTOR,
        "Ask a recorded request again",
        "With `dry`: whose key pays and what it may cost, and nothing is asked.",
        body="ToReplay",
    ),
    ("", "inspector", "translate"): Told(
        "translateDocument",
        INSPECTOR,
        "A document in all other dialects",
        "Nothing is sent to anybody.",
        body="ToTranslate",
        answer="Translations",
    ),
    ("", "inspector", "setup"): Told(
        "getSetup", INSPECTOR, "What is on and what is not, and what to copy into clients"
    ),
    ("", "inspector", "ask"): Told(
        "askModel",
        INSPECTOR,
        "Ask the demo model, or another",
        "As the client key that signed in, if it was one.",
        body="ToAsk",
        answer="AskedExchange",
    ),
    ("", "inspector", "dashboard"): Told(
        "getDashboard",
        INSPECTOR,
        "Requests, errors, times, tokens, cost and losses in steps of time",
        "A client key sees its own.",
        query=(
            _parameter("from", text(default="1h"), "unix seconds, YYYY-MM-DD (UTC), or a time ago: 90m, 12h"),
            _parameter("to", text(), "the same"),
            _parameter("step", whole(minimum=1), "seconds of a step"),
            _parameter("by", text(enum=["model", "provider", "key"], default="model"), "what is told apart"),
            _parameter("model", text(), "only this one"),
            _parameter("provider", text(), "only this one"),
            _parameter("key", text(), "only this client key"),
            _parameter("format", text(enum=["json", "csv"], default="json"), "`csv`: a table to keep"),
        ),
    ),
    ("", "inspector", "keys.list"): Told(
        "listInspectorKeys", INSPECTOR, "Client keys with what they have used of their budgets"
    ),
    ("", "inspector", "keys.create"): Told(
        "createInspectorKey",
        INSPECTOR,
        "Make a client key",
        "The key itself is told this once.",
        "KeyToMake",
        "NewKey",
        201,
    ),
    ("", "inspector", "keys.get"): Told("getInspectorKey", INSPECTOR, "One client key", answer="Key"),
    ("", "inspector", "keys.update"): Told(
        "updateInspectorKey", INSPECTOR, "Change a client key", body="KeyChange", answer="Key"
    ),
    ("", "inspector", "keys.revoke"): Told(
        "revokeInspectorKey", INSPECTOR, "Revoke a client key", answer="Key"
    ),
    ("", "inspector", "keys.rotate"): Told(
        "rotateInspectorKey",
        INSPECTOR,
        "A new key for the same caller",
        "It is told this once.",
        "KeyRotation",
        "NewKey",
    ),
    ("", "inspector", "keys.delete"): Told(
        "deleteInspectorKey", INSPECTOR, "Delete a client key, with all that its caller stored", answer="Key"
    ),
    ("", "health", "/healthz"): Told("getHealth", CONDITION, "Whether the process answers", answer="Health"),
    ("", "health", "/health"): Told("getHealthToo", CONDITION, "The same", answer="Health"),
    ("", "ready", "/readyz"): Told(
        "getReadiness",
        CONDITION,
        "Whether requests should be sent here",
        "503 while it drains, and while nothing more can be written down.",
        answer="Readiness",
    ),
    ("", "metrics", "/metrics"): Told(
        "getMetrics",
        CONDITION,
        "Metrics for Prometheus",
        "Opened by `server.metrics_key` or the admin secret; without client keys, by nobody's.",
    ),
    ("", "stub", "/"): Told("getRoot", CONDITION, "Version and endpoints", answer="Root"),
}
