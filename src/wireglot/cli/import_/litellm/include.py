"""`include` of a LiteLLM configuration: lists grow, anything else is replaced, as LiteLLM does it."""

from __future__ import annotations

from collections.abc import Callable

from wireglot.cli.import_.document import Node, Unreadable, kind


def with_included(root: Node, read: Callable[[str], tuple[Node, list[Node]]]) -> tuple[Node, list[Node]]:
    """The whole document, and what of it does not hold. `read` gets the names of files."""
    listed = root.fields.get("include")
    if listed is None or not isinstance(root.value, dict):
        return root, []
    if not isinstance(listed.value, list):
        raise Unreadable(f"line {listed.line}: include: expected a list of files, found {kind(listed)}")
    merged = dict(root.value)
    beside: list[Node] = []
    for item in listed.items:
        if not item.text:
            raise Unreadable(f"line {item.line}: include: expected the name of a file, found {kind(item)}")
        try:
            other, overridden = read(item.text)
        except Unreadable as fault:
            raise Unreadable(f"line {item.line}: the included {item.text}: {fault}") from None
        beside.extend(overridden)
        for name, node in other.fields.items():
            earlier = merged.get(name)
            if name == "include":
                beside.append(node)  # LiteLLM follows one step only
            elif earlier is not None and isinstance(earlier.value, list) and isinstance(node.value, list):
                merged[name] = Node([*earlier.value, *node.value], earlier.path, earlier.line, earlier.file)
            else:
                beside.extend([earlier] if earlier is not None else [])
                merged[name] = node
    return Node(merged, root.path, root.line, root.file), beside
