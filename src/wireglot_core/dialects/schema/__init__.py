"""Adapts JSON Schemas to what each target accepts, with a note for everything that could change the meaning.

`project(schema, target)` is pure and cached. The rules of a target are a table in `targets`; what a target
cannot express is appended to the description, as in "(minLength: 3; pattern: ^a+$)", for the model to read.
"""

from .keywords import infer_type
from .project import project
from .root import WRAPPED_IN, object_root
from .values import Projected, SchemaNote, SchemaTarget

__all__ = ["WRAPPED_IN", "Projected", "SchemaNote", "SchemaTarget", "infer_type", "object_root", "project"]
