"""All that a package which adds a dialect may import: neutral form, parts of a dialect, JSON and streams.

The names here stay; those of other modules may change with any release.

    from wireglot_core.extension import Dialect, Request, Surface

The check of a dialect is `wireglot_core.testing.check_dialect`.
"""

from wireglot_core.dialects.base import Dialect, StreamReader, StreamWriter
from wireglot_core.dialects.body import Body, RequestGlance, glance_body, one_answer, stated_in, whole_number
from wireglot_core.dialects.capabilities import Assist, EmbeddingForm, Embeddings, Stored, StoredEvents
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.envelope import BODY_MARK
from wireglot_core.dialects.faults import kind_of_status, plain_status
from wireglot_core.dialects.listed_model import ListedModel
from wireglot_core.dialects.passthrough import SseTap
from wireglot_core.dialects.places import Places
from wireglot_core.dialects.registry import (
    DialectName,
    OwnDialect,
    UnknownDialect,
    dialect,
    dialect_name,
    register,
    unregister,
)
from wireglot_core.dialects.surface import (
    AnswerGlance,
    ClientSide,
    Counts,
    ModelLists,
    ReasoningState,
    Route,
    RouteMatch,
    StreamFraming,
    StreamMarks,
    Surface,
    Tap,
    UpstreamFraming,
    UpstreamSide,
)
from wireglot_core.ir.content import (
    CacheMark,
    Citation,
    Extra,
    Foreign,
    Media,
    Message,
    Part,
    Reasoning,
    ResultPart,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import (
    ApiError,
    ClientFault,
    ErrorKind,
    Unsupported,
    UpstreamFault,
    WireglotError,
)
from wireglot_core.ir.loss import FEATURES, Loss
from wireglot_core.ir.outcome import Candidate, Response, Stop, StopReason, Usage
from wireglot_core.ir.request import (
    HostedTool,
    OutputFormat,
    Request,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)
from wireglot_core.ir.stream import (
    Delta,
    Event,
    Failure,
    Finish,
    ForeignEvent,
    OtherAnswer,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
    fold,
    unfold,
)
from wireglot_core.wire.json import BadJson, decode, encode
from wireglot_core.wire.sse import Frame, SseDecoder

__all__ = [
    "BODY_MARK",
    "FEATURES",
    "AnswerGlance",
    "ApiError",
    "Assist",
    "BadJson",
    "Body",
    "CacheMark",
    "Candidate",
    "Citation",
    "ClientFault",
    "ClientSide",
    "Context",
    "Counts",
    "Delta",
    "Dialect",
    "DialectName",
    "EmbeddingForm",
    "Embeddings",
    "ErrorKind",
    "Event",
    "Extra",
    "Failure",
    "Finish",
    "Foreign",
    "ForeignEvent",
    "Frame",
    "HostedTool",
    "ListedModel",
    "Loss",
    "Media",
    "Message",
    "ModelLists",
    "OtherAnswer",
    "OutputFormat",
    "OwnDialect",
    "Part",
    "PartEnd",
    "PartStart",
    "Places",
    "Reasoning",
    "ReasoningState",
    "Rendered",
    "Request",
    "RequestGlance",
    "Response",
    "ResultPart",
    "Route",
    "RouteMatch",
    "Sampling",
    "Signature",
    "SseDecoder",
    "SseTap",
    "Start",
    "Stop",
    "StopReason",
    "Stored",
    "StoredEvents",
    "StreamFraming",
    "StreamMarks",
    "StreamReader",
    "StreamWriter",
    "Surface",
    "Tap",
    "Text",
    "Thinking",
    "Tool",
    "ToolCall",
    "ToolChoice",
    "ToolResult",
    "UnknownDialect",
    "Unsupported",
    "UpstreamFault",
    "UpstreamFraming",
    "UpstreamSide",
    "Usage",
    "UsageReport",
    "WireglotError",
    "decode",
    "dialect",
    "dialect_name",
    "encode",
    "fold",
    "glance_body",
    "kind_of_status",
    "one_answer",
    "plain_status",
    "register",
    "stated_in",
    "unfold",
    "unregister",
    "whole_number",
]
