"""A call as Hermes and Qwen write it between their tags."""

import msgspec


class TaggedCall(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: msgspec.Raw
