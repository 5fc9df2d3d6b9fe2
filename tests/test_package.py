"""What `import wireglot` and `python -m wireglot` give."""

import os
import runpy
import subprocess
import sys

import pytest

import wireglot
from wireglot_core.wire.scan import IS_NATIVE


def test_it_is_run_as_a_module_where_no_command_is_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["wireglot", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("wireglot", run_name="__main__")
    assert not ended.value.code
    assert wireglot.__version__ in capsys.readouterr().out
    runpy.run_module("wireglot.__main__", run_name="imported")
    assert capsys.readouterr().out == ""


def test_every_public_name_can_be_imported():
    for name in (*wireglot.__all__, "history", "kimi"):
        assert getattr(wireglot, name) is not None
        assert name in dir(wireglot)
    misspelt = "translate_requests"
    with pytest.raises(AttributeError, match=f"has no attribute '{misspelt}'"):
        getattr(wireglot, misspelt)


@pytest.mark.skipif(not IS_NATIVE, reason="the native module was not built")
def test_the_command_line_runs_without_the_native_module_where_that_is_asked_for() -> None:
    code = "from wireglot.cli import main; main(['dialects']); from wireglot_core.wire import scan; print(scan.IS_NATIVE)"
    for pure, expected in (("", "True"), ("1", "False")):
        environment = {**os.environ, "WIREGLOT_PURE": pure}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.split()[-1] == expected
