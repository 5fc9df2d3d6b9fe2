"""What a program imported up to 0.2.0 from `wireglot` it finds for one release more, with a warning."""

import importlib
import subprocess
import sys

import pytest

from wireglot import former_names

DOCUMENTED = (
    "wireglot.dialects.base",
    "wireglot.dialects.body",
    "wireglot.dialects.capabilities",
    "wireglot.dialects.envelope",
    "wireglot.dialects.faults",
    "wireglot.dialects.passthrough",
    "wireglot.dialects.registry",
    "wireglot.dialects.surface",
    "wireglot.ir.errors",
    "wireglot.ir.outcome",
    "wireglot.ir.request",
    "wireglot.ir.stream",
    "wireglot.plugins",
    "wireglot.providers.endpoints",
    "wireglot.providers.spec",
    "wireglot.testing.check_dialect",
    "wireglot.testing.strategies",
    "wireglot.traces.file",
    "wireglot.traces.trace",
    "wireglot.translate",
    "wireglot.wire.json",
    "wireglot.wire.sse",
)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_former_name_gives_the_module_of_the_core_with_a_warning(name: str) -> None:
    sys.modules.pop(name, None)
    core = importlib.import_module(former_names._core_name(name))
    spec = core.__spec__
    with pytest.warns(DeprecationWarning, match="the former name goes with the next release"):
        assert importlib.import_module(name) is core
    assert core.__spec__ is spec


def test_the_warning_is_at_the_line_that_imports() -> None:
    code = "import warnings\nwarnings.simplefilter('always')\nfrom wireglot.ir.stream import Delta\nprint(Delta.__module__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "wireglot_core.ir.stream\n"
    assert done.stderr.startswith("<string>:3: DeprecationWarning: wireglot.ir is wireglot_core.ir now")


@pytest.mark.parametrize("name", ["wireglot.nothing", "wireglot.ir.nothing", "wireglot.testing.nothing"])
def test_what_never_was_is_not_found(name: str) -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(name)


def test_a_core_of_another_version_is_refused_with_what_to_do() -> None:
    former_names._check_version(former_names.VERSION)
    with pytest.raises(
        ImportError, match=r"needs wireglot_core .* is 0\.0\.1: uninstall wireglot and wireglot-core"
    ):
        former_names._check_version("0.0.1")
