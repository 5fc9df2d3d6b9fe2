"""What belongs to a vendor stays with it: an id that only its issuer can resolve never reaches another vendor,
and what is readable always does."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.core.laws.cases import ALL_PAIRS, ONE_TURN, of_kind
from tests.tiers import rows
from wireglot_core import translate_request
from wireglot_core.dialects.registry import NAMES, DialectName, dialect_name, surface
from wireglot_core.ir.errors import Unsupported
from wireglot_core.providers.spec import names, provider
from wireglot_core.testing.check_dialect import Case
from wireglot_core.wire.json import encode_text

ID = "vendor-id-0451"
PNG = "iVBORw0KGgo="
GOOGLE_FILE = f"https://generativelanguage.googleapis.com/v1beta/files/{ID}"

Body = dict[str, Any]


def _anthropic(*content: Any, **fields: Any) -> Body:
    turns = [{"role": "user", "content": [{"type": "text", "text": "Look."}, *content]}]
    return {"model": "m", "max_tokens": 9, "messages": turns, **fields}


def _anthropic_ids() -> Iterator[tuple[str, Body]]:
    file = {"type": "file", "file_id": ID}
    for kind in ("image", "document"):
        yield kind, _anthropic({"type": kind, "source": file})
        used = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
        result = {
            "type": "tool_result",
            "tool_use_id": "toolu_1",
            "content": [{"type": kind, "source": file}],
        }
        turns = [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": [used]},
            {"role": "user", "content": [result]},
        ]
        tool = {"name": "f", "input_schema": {"type": "object"}}
        yield f"{kind} of a result", {"model": "m", "max_tokens": 9, "messages": turns, "tools": [tool]}
    yield "upload", _anthropic({"type": "container_upload", "file_id": ID})
    code = [{"type": "code_execution_20250825", "name": "code_execution"}]
    yield "container", _anthropic(container=ID, tools=code)
    skill = {"type": "custom", "skill_id": ID, "version": "latest"}
    yield "skill", _anthropic(container={"skills": [skill]}, tools=code)
    made = {"type": "bash_code_execution_output", "file_id": ID}
    said = {"type": "bash_code_execution_result", "stdout": "", "stderr": "", "return_code": 0}
    turns = [
        {"role": "user", "content": "Look."},
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "bash_code_execution", "input": {}},
                {
                    "type": "bash_code_execution_tool_result",
                    "tool_use_id": "srvtoolu_1",
                    "content": {**said, "content": [made]},
                },
                {"type": "text", "text": "Done."},
            ],
        },
        {"role": "user", "content": "And now?"},
    ]
    yield "made file", {"model": "m", "max_tokens": 9, "messages": turns, "tools": code}


def _chat(*content: Any, **fields: Any) -> Body:
    turns = [{"role": "user", "content": [{"type": "text", "text": "Look."}, *content]}]
    return {"model": "m", "messages": turns, **fields}


def _chat_ids() -> Iterator[tuple[str, Body]]:
    yield "file", _chat({"type": "file", "file": {"file_id": ID}})
    yield "bucket", _chat({"type": "image_url", "image_url": {"url": f"ms://{ID}"}})
    spoken = {"role": "assistant", "content": None, "audio": {"id": ID}}
    turns = [{"role": "user", "content": "Look."}, spoken, {"role": "user", "content": "Again?"}]
    yield "spoken answer", {"model": "m", "messages": turns}


def _responses(*content: Any, **fields: Any) -> Body:
    parts = [{"type": "input_text", "text": "Look."}, *content]
    return {"model": "m", "input": [{"type": "message", "role": "user", "content": parts}], **fields}


def _responses_ids() -> Iterator[tuple[str, Body]]:
    image, file = {"type": "input_image", "file_id": ID}, {"type": "input_file", "file_id": ID}
    called = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    asked = {"type": "message", "role": "user", "content": "Look."}
    function = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    for kind, part in (("image", image), ("file", file)):
        yield kind, _responses(part)
        result = {"type": "function_call_output", "call_id": "call_1", "output": [part]}
        yield f"{kind} of a result", {"model": "m", "input": [asked, called, result], "tools": [function]}
    yield "previous response", _responses(previous_response_id=ID)
    yield "conversation", _responses(conversation={"id": ID})
    yield "prompt", _responses(prompt={"id": ID})
    yield "item", {"model": "m", "input": [{"type": "item_reference", "id": ID}, asked]}
    yield "vector store", _responses(tools=[{"type": "file_search", "vector_store_ids": [ID]}])
    yield "container", _responses(tools=[{"type": "code_interpreter", "container": ID}])
    within = {"type": "auto", "file_ids": [ID]}
    yield "container's file", _responses(tools=[{"type": "code_interpreter", "container": within}])
    connector = {"type": "mcp", "server_label": "mail", "connector_id": ID, "require_approval": "never"}
    yield "connector", _responses(tools=[connector])
    place = {"type": "container_reference", "container_id": ID}
    yield "shell's container", _responses(tools=[{"type": "shell", "environment": place}])
    skill = {"type": "skill_reference", "skill_id": ID}
    skilled = {"type": "container_auto", "skills": [skill]}
    yield "skill", _responses(tools=[{"type": "shell", "environment": skilled}])
    ran = {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "status": "completed",
        "code": "1",
        "container_id": ID,
        "outputs": [{"type": "logs", "logs": "1"}],
    }
    yield "ran code", {"model": "m", "input": [asked, ran, asked]}
    seen = {"type": "computer_screenshot", "file_id": ID}
    looked = {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "call_2",
        "status": "completed",
        "pending_safety_checks": [],
        "action": {"type": "screenshot"},
    }
    shown = {"type": "computer_call_output", "call_id": "call_2", "output": seen}
    yield "screenshot", {"model": "m", "input": [asked, looked, shown], "tools": [{"type": "computer"}]}


def _gemini(*parts: Any, **fields: Any) -> Body:
    return {"contents": [{"role": "user", "parts": [{"text": "Look."}, *parts]}], **fields}


def _gemini_ids() -> Iterator[tuple[str, Body]]:
    for mime in ("image/png", "application/pdf", "audio/wav", "video/mp4"):
        for address in (GOOGLE_FILE, f"files/{ID}", f"gs://bucket/{ID}"):
            data = {"mimeType": mime, "fileUri": address}
            yield f"{mime} at {address.partition('/')[0]}", _gemini({"fileData": data})
    yield "no type", _gemini({"fileData": {"fileUri": f"gs://bucket/{ID}"}})
    yield "cache", _gemini(cachedContent=f"cachedContents/{ID}")
    store = {"fileSearchStoreNames": [f"fileSearchStores/{ID}"]}
    yield "store", _gemini(tools=[{"fileSearch": store}])
    corpus = {"vertexRagStore": {"ragResources": [{"ragCorpus": ID}]}}
    yield "corpus", _gemini(tools=[{"retrieval": corpus}])


def _interactions(*content: Any, **fields: Any) -> Body:
    turn = {"type": "user_input", "content": [{"type": "text", "text": "Look."}, *content]}
    return {"model": "m", "input": [turn], **fields}


def _interactions_ids() -> Iterator[tuple[str, Body]]:
    for kind in ("image", "document", "audio", "video"):
        for address in (GOOGLE_FILE, f"files/{ID}", f"gs://bucket/{ID}"):
            yield f"{kind} at {address.partition('/')[0]}", _interactions({"type": kind, "uri": address})
    yield "previous", _interactions(previous_interaction_id=ID)
    yield "continued", _interactions(continuation_token=ID)
    yield "cache", _interactions(cached_content=f"cachedContents/{ID}")
    yield "store", _interactions(tools=[{"type": "file_search", "file_search_store_names": [ID]}])
    corpus = {"type": "retrieval", "rag_store_config": {"rag_resources": [{"rag_corpus": ID}]}}
    yield "corpus", _interactions(tools=[corpus])


SAMPLES = {
    "anthropic": _anthropic_ids,
    "openai-chat": _chat_ids,
    "openai-responses": _responses_ids,
    "gemini": _gemini_ids,
    "gemini-interactions": _interactions_ids,
    "code-assist": lambda: ((name, {"model": "m", "request": body}) for name, body in _gemini_ids()),
    "anthropic-vertex": _anthropic_ids,
    "anthropic-bedrock": _anthropic_ids,
    "gemini-simple": lambda: iter(
        [
            (
                "store",
                {"model": "m", "input": "Look.", "tools": [{"fileSearch": {"fileSearchStoreNames": [ID]}}]},
            )
        ]
    ),
    "ollama": lambda: iter(()),
    "ollama-generate": lambda: iter(()),
}
"""Every place of a dialect's requests that holds an id which only its vendor can resolve."""


FOREIGN = [name for name in NAMES if surface(name).family != "anthropic"]


def test_the_law_knows_where_each_dialect_names_what_its_vendor_holds():
    assert SAMPLES.keys() == set(NAMES)


CASES = [
    pytest.param(source, target, body, id=f"{source}-{target}-{name}")
    for source, target in ALL_PAIRS
    for name, body in SAMPLES[source]()
    if surface(source).issuer != surface(target).issuer
]


@rows(("source", "target", "body"), CASES)
def test_a_vendors_id_never_reaches_another_vendor_and_is_a_serious_loss(source, target, body):
    rendered = translate_request(body, source=source, target=target)
    assert ID not in encode_text(rendered.value)
    assert "serious" in {loss.grade for loss in rendered.losses}, rendered.losses
    if target not in ONE_TURN:
        assert "Look." in str(rendered.value)


_KEYS = frozenset(
    {
        "cachedContent",
        "connector_id",
        "container",
        "container_id",
        "conversation",
        "file_id",
        "file_ids",
        "fileSearchStoreNames",
        "previous_interaction_id",
        "previous_response_id",
        "skill_id",
        "vector_store_ids",
    }
)


def _ids(value: Any, owned: bool = False) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _ids(inner, key in _KEYS)
    elif isinstance(value, list):
        for inner in value:
            yield from _ids(inner, owned)
    elif owned and isinstance(value, str) and len(value) > 4:
        yield value


@rows("case", of_kind("requests"))
def test_no_fixture_hands_an_id_to_another_vendor(case: Case):
    found = set(_ids(case.body))
    for target in NAMES if found else ():
        if surface(target).issuer == surface(case.dialect).issuer:
            continue
        try:
            rendered = translate_request(case.body, source=dialect_name(case.dialect), target=target)
        except Unsupported:
            continue
        sent = encode_text(rendered.value)
        assert not [each for each in found if each in sent], target


@pytest.mark.parametrize(("source", "target"), ALL_PAIRS)
def test_a_file_of_the_vendor_itself_is_still_sent(source, target):
    """OpenAI's two dialects, Google's, and Messages in a cloud's form name the same files."""
    if surface(source).issuer != surface(target).issuer or {source, target} & {*ONE_TURN, "ollama"}:
        return
    files = {
        "openai-chat": "file",
        "openai-responses": "file",
        "gemini": "application/pdf at https:",
        "gemini-interactions": "document at https:",
    }
    name = files.get(source) or {"gemini": files["gemini"], "anthropic": "document"}[surface(source).family]
    body = dict(SAMPLES[source]())[name]
    rendered = translate_request(body, source=source, target=target)
    assert ID in encode_text(rendered.value)
    assert not [loss for loss in rendered.losses if loss.grade == "serious"]


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_an_upstream_of_the_clients_own_dialect_gets_every_id(name):
    """Which of its vendors issued an id nobody can tell: it belongs to the upstream that is configured."""
    for _, body in SAMPLES[name]():
        assert translate_request(body, source=name, target=name).value == body


# --- several vendors speak one dialect

OPENAI: tuple[DialectName, ...] = ("openai-chat", "openai-responses")
HOSTS = [
    (name, spoken)
    for name in names()
    for spoken in OPENAI
    if spoken in provider(name).dialects and provider(name).careful
]
"""But those who serve a vendor's models for it."""


@rows(("host", "target"), HOSTS)
def test_openais_files_are_sent_to_openai_alone_when_its_dialects_are_translated(host, target):
    (source,) = set(OPENAI) - {target}
    for name, body in SAMPLES[source]():
        if name not in ("file", "image", "file of a result", "image of a result"):
            continue
        rendered = translate_request(body, source=source, target=target, provider=host)
        if host == "openai":
            assert ID in encode_text(rendered.value), name
            continue
        assert ID not in encode_text(rendered.value), name
        assert "serious" in {loss.grade for loss in rendered.losses}, name


@rows(("host", "spoken"), HOSTS)
def test_a_client_of_a_hosts_own_dialect_may_name_files_that_it_has_there(host, spoken):
    body = dict(SAMPLES[spoken]())["file"]
    rendered = translate_request(body, source=spoken, target=spoken, provider=host)
    assert "file_reference" not in {loss.feature for loss in rendered.losses}


MOONSHOT = ("kimi", "kimi-cn", "kimi-coding")


@rows("kind", ["image_url", "video_url"])
@rows("host", [host for host, spoken in HOSTS if spoken == "openai-chat"])
def test_only_moonshot_gets_the_addresses_of_its_files(host, kind):
    """Also from a client of the same dialect."""
    body = _chat({"type": kind, kind: {"url": f"ms://{ID}"}})
    rendered = translate_request(body, source="openai-chat", target="openai-chat", provider=host)
    losses = {(loss.feature, loss.grade) for loss in rendered.losses}
    if host in MOONSHOT:
        assert ID in encode_text(rendered.value)
        assert ("file_reference", "serious") not in losses
    else:
        assert ID not in encode_text(rendered.value)
        assert ("file_reference", "serious") in losses


# --- what is readable

SUMMARY = "They sailed north and met fog."


def _compacted(**block: Any) -> Body:
    turns = [
        {
            "role": "assistant",
            "content": [{"type": "compaction", **block}, {"type": "text", "text": "Go on?"}],
        },
        {"role": "user", "content": "Yes. Where were we?"},
    ]
    return {"model": "m", "max_tokens": 9, "messages": turns}


@pytest.mark.parametrize("target", [name for name in FOREIGN if name not in ONE_TURN])
def test_a_readable_summary_of_the_conversation_crosses_in_its_place(target):
    rendered = translate_request(_compacted(content=SUMMARY), source="anthropic", target=target)
    sent = encode_text(rendered.value)
    assert -1 < sent.find(SUMMARY) < sent.find("Go on?") < sent.find("Yes. Where")
    about = [(loss.path, loss.feature, loss.action) for loss in rendered.losses]
    assert ("$.messages[0].content[0]", "foreign_part", "approximated") in about
    assert "serious" not in {loss.grade for loss in rendered.losses}


def test_what_is_encrypted_beside_a_summary_is_a_loss_of_its_own():
    for name in ("encrypted_content", "signature"):
        body = _compacted(content=SUMMARY, **{name: ID})
        rendered = translate_request(body, source="anthropic", target="openai-chat")
        assert ID not in encode_text(rendered.value)
        assert f"$.messages[0].content[0].{name}" in {loss.path for loss in rendered.losses}


@rows(
    ("source", "target", "body"),
    [
        pytest.param(source, target, body, id=f"{source}-{target}")
        for source, body in (
            ("anthropic", _compacted(content=None, encrypted_content=ID)),
            (
                "openai-responses",
                {
                    "model": "m",
                    "input": [
                        {"type": "compaction", "encrypted_content": ID},
                        {"type": "message", "role": "user", "content": "Yes. Where were we?"},
                    ],
                },
            ),
        )
        for target in NAMES
        if surface(target).family != source
    ],
)
def test_a_summary_that_only_its_vendor_can_read_is_a_serious_loss(source, target, body):
    rendered = translate_request(body, source=source, target=target)
    assert ID not in encode_text(rendered.value)
    assert "serious" in {loss.grade for loss in rendered.losses}


def test_a_compaction_that_failed_loses_nothing():
    rendered = translate_request(_compacted(content=None), source="anthropic", target="openai-chat")
    assert {loss.grade for loss in rendered.losses} <= {"harmless"}


@rows("target", FOREIGN)
def test_the_words_of_a_document_of_texts_and_pictures_cross(target):
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    content = [{"type": "text", "text": SUMMARY}, picture]
    document = {"type": "document", "title": "Log", "source": {"type": "content", "content": content}}
    rendered = translate_request(_anthropic(document), source="anthropic", target=target)
    assert SUMMARY in encode_text(rendered.value)
    assert ("image", "dropped") in {(loss.feature, loss.action) for loss in rendered.losses}
