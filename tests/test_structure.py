"""The house rules that no other tool knows, over all files of src; some over all files of Python."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from typing import get_args

from tools.structure import (
    SOURCES,
    Module,
    broad_excepts,
    circles,
    import_graph,
    imported,
    modules,
    nodes_of,
    shortest_circle,
)
from wireglot_core.dialects.registry import NAMES
from wireglot_core.ir.grades import GRADES
from wireglot_core.ir.loss import Feature

MAX_POSITIONAL = 5
MAX_ARGUMENTS = 30
GATEWAY_MAY_IMPORT = (
    "wireglot_core.dialects.argument_stream",
    "wireglot_core.dialects.arguments",
    "wireglot_core.dialects.base",
    "wireglot_core.dialects.body",
    "wireglot_core.dialects.capabilities",
    "wireglot_core.dialects.context",
    "wireglot_core.dialects.embeddings",
    "wireglot_core.dialects.envelope",
    "wireglot_core.dialects.listed_model",
    "wireglot_core.dialects.passthrough",
    "wireglot_core.dialects.paths",
    "wireglot_core.dialects.places",
    "wireglot_core.dialects.registry",
    "wireglot_core.dialects.surface",
)


def gateway():
    """Its modules outside config/, where a dialect may be named."""
    for name, module in modules().items():
        if name.startswith("wireglot.gateway") and not name.startswith("wireglot.gateway.config"):
            yield module


def test_no_two_files_import_one_another_in_a_circle():
    graph = import_graph()
    found = {frozenset(group): " -> ".join(shortest_circle(graph, group)) for group in circles(graph)}
    assert set(found) == set(), "\n".join(found.values())


def test_circles_are_found():
    graph = {"a": {"b"}, "b": {"c", "e"}, "c": {"d"}, "d": {"b"}, "e": set(), "f": {"a"}}
    assert circles(graph) == [["b", "c", "d"]]
    assert shortest_circle(graph, ["b", "c", "d"]) == ["b", "c", "d", "b"]


def test_imports_for_types_and_inside_functions_count():
    text = """
if TYPE_CHECKING:
    from wireglot.gateway import app
def work():
    import wireglot_core.translate
    from . import near
    from ..above import thing
"""
    module = Module("wireglot.some.module", SOURCES / "wireglot" / "some" / "module.py", nodes_of(text))
    assert set(imported(module)) == {
        "wireglot.gateway.app", "wireglot_core.translate", "wireglot.some.near", "wireglot.above.thing"
    }  # fmt: skip


def test_a_package_says_what_it_is_and_what_it_offers_and_does_nothing():
    found = {
        module.file
        for module in modules().values()
        if module.is_package and not all(map(_is_declaration, module.tree.body))
    }
    assert not found


def _is_declaration(node: ast.stmt) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name.startswith("__") and name.endswith("__")
        case ast.FunctionDef(name="__getattr__" | "__dir__"):  # what is loaded when it is asked for
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body, orelse=orelse):
            return all(map(_is_declaration, (*body, *orelse)))
        case _:
            return False


def test_every_module_says_what_it_is_in_a_sentence():
    assert [module.file for module in modules().values() if not module.title] == []


def test_the_gateway_names_no_dialect():
    """Neither as a string nor by a constant; the settings are read in config/, where users name them."""
    strings = {*NAMES, *(name.encode() for name in NAMES)}
    constants = {name.replace("-", "_").upper() for name in NAMES}
    found = set()
    for module in gateway():
        for node in module.nodes:
            match node:
                case ast.Constant(value=str() | bytes() as value) if value in strings:
                    found.add(module.file)
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                    if name.rpartition(".")[2].lstrip("_") in constants:
                        found.add(module.file)
    assert not found


def test_the_gateway_imports_what_dialects_have_in_common_and_no_dialect():
    graph = import_graph()
    found = {
        f"{module.file}: {target}"
        for module in gateway()
        for target in graph[module.name]
        if target.startswith("wireglot_core.dialects") and target not in GATEWAY_MAY_IMPORT
    }
    assert not found


def test_no_object_is_made_from_a_long_row_of_unnamed_values():
    ours = {
        node.name
        for module in modules().values()
        for node in module.nodes
        if isinstance(node, ast.ClassDef) and not _takes_any_number(node)
    }
    found = {
        f"{module.file}: {name}"
        for module in modules().values()
        for node in module.nodes
        if isinstance(node, ast.Call) and len(node.args) > MAX_POSITIONAL
        if (name := _called(node.func)) in ours and name.lstrip("_")[:1].isupper()
    }
    assert not found


def _takes_any_number(made: ast.ClassDef) -> bool:
    """A list of names is a list, and not a row of unnamed values."""
    return any(
        isinstance(node, ast.FunctionDef) and node.name == "__init__" and node.args.vararg is not None
        for node in made.body
    )


def _called(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):  # Rendered[bytes](...)
            return _called(value)
        case _:
            return ""


def test_what_is_called_for_a_request_is_called_with_few_names():
    """CPython makes a dictionary of the arguments of a call where those without a name and twice those with
    one are over thirty: such a call takes up to six times as long (`STACK_USE_GUIDELINE` of its compiler)."""
    rooms = ("ir", "wire", "dialects", "providers", "translate", "http", "stores", "gateway")
    found = {
        f"{module.file}:{call.lineno}"
        for name, module in modules().items()
        if name.partition(".")[2].partition(".")[0] in rooms and ".config." not in name
        for function in module.nodes
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and len(call.args) + 2 * len(call.keywords) > MAX_ARGUMENTS
    }
    assert found == set()


def test_one_name_means_one_class():
    names = Counter(
        node.name
        for name, module in modules().items()
        if name.startswith(("wireglot.gateway", "wireglot.http", "wireglot.stores"))
        for node in module.nodes
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} == set()


def test_anyone_who_catches_everything_says_why():
    """On the line itself: the page about the architecture lists it."""
    found = {
        f"{place.file}: {place.function}"
        for module in modules().values()
        for place in broad_excepts(module)
        if place.why in ("", "as above")
    }
    assert not found


def test_catching_everything_to_raise_it_again_is_no_broad_except():
    file = SOURCES / "wireglot" / "cli" / "translate_dataset.py"
    assert [place.function for place in broad_excepts(modules()["wireglot.cli.translate_dataset"])] == [
        "translate_line"
    ]
    assert (
        broad_excepts(Module("x", file, nodes_of("try: pass\nexcept BaseException:\n    end()\n    raise\n")))
        == []
    )


def declared_losses(module: Module) -> Iterator[tuple[str, str, str]]:
    """Feature, action and place of each loss that its code or its tables of lost fields declare. A row must
    have constants, or `feature_of` for what is lost with a signature; code may compute them."""
    for node in module.nodes:
        if not isinstance(node, ast.Call) or (name := getattr(node.func, "id", "")) not in ("Loss", "Lost"):
            continue
        feature, action = [*node.args, None, None][name == "Loss" :][:2]
        if isinstance(feature, ast.Name) and feature.id == "feature_of":
            features = ["message.phase", "reasoning.signature"]
        else:
            features = [str(feature.value)] if isinstance(feature, ast.Constant) else []
        if features and isinstance(action, ast.Constant):
            for each in features:
                yield str(each), str(action.value), f"{module.name}:{node.lineno}"
        elif name == "Lost":
            yield "?", "?", f"{module.name}:{node.lineno}"


def test_every_loss_that_the_code_declares_is_judged():
    """[X25] A new feature comes with its rows in `GRADES`: how bad it is, and why."""
    missing = [
        f"{feature!r} {action!r} ({place})"
        for module in modules().values()
        for feature, action, place in declared_losses(module)
        if (feature, action) not in GRADES
    ]
    assert missing == [], "add their rows to GRADES in ir/grades.py"
    assert {feature for feature, _ in GRADES} == set(get_args(Feature))


def test_losses_in_rows_are_found_as_well_as_those_in_code():
    code = (
        'Loss(path, "image", "dropped", "x")\n'
        'Loss(path, feature, "dropped")\n'
        'Lost("citations", "dropped", "x")\n'
        'Lost(feature_of, "approximated", "x")\n'
        'Lost(computed, "dropped", "x")\n'
    )
    assert list(declared_losses(Module("x", SOURCES, nodes_of(code)))) == [
        ("image", "dropped", "x:1"),
        ("citations", "dropped", "x:3"),
        ("message.phase", "approximated", "x:4"),
        ("reasoning.signature", "approximated", "x:4"),
        ("?", "?", "x:5"),
    ]


def test_what_a_checker_is_asked_to_pass_over_has_its_reason_beside_it():
    """mypy and ruff report those that are not needed any more, but not why the others are."""
    bare = re.compile(r"# (?:type: ignore|noqa)(?:\[[\w, -]+\]|: [A-Z]+\d+)?\s*$")
    unfinished = re.compile(r"# (?:TODO|FIXME|XXX)\b")
    found = [
        f"{path.relative_to(SOURCES.parent)}:{number}: {line.strip()}"
        for folder in ("src", "tests", "tools", "proofs", "clients", "examples")
        for path in sorted((SOURCES.parent / folder).rglob("*.py"))
        if ".installed" not in path.parts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if bare.search(line) or unfinished.search(line)
    ]
    assert found == []


THREADED = ("cache", "dialects", "gateway.trace", "history", "ir", "providers", "traces", "wire")
"""Packages that several threads may be the first to use."""


def test_types_that_threads_share_are_built_at_import():
    """msgspec 0.22 ends the process where one thread uses a type that another has only begun to build."""
    found = []
    for name, module in modules().items():
        if not name.partition(".")[2].startswith(THREADED):
            continue
        calls = [node for node in module.nodes if isinstance(node, ast.Call)]
        ready = {ast.unparse(call.args[0]) for call in calls if _called(call.func) == "Decoder" and call.args}
        for call in calls:
            types = [keyword.value for keyword in call.keywords if keyword.arg == "type"]
            if ast.unparse(call.func) == "msgspec.convert":
                types = call.args[1:2]
            elif ast.unparse(call.func) not in ("msgspec.json.decode", "msgspec.msgpack.decode"):
                continue
            found += [
                f"{name}:{call.lineno}: {each.id}"
                for each in types
                if isinstance(each, ast.Name) and each.id != "str" and each.id not in ready
            ]
    assert found == []
