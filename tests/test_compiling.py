"""What is compiled beforehand is what pytest loads."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests.compiling import compile_modules


def test_pytest_takes_what_was_compiled_for_its_own(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "test_one.py"
    module.write_text("def test_one():\n    assert 1 == 2\n")
    compile_modules([module], request.config)
    hook = rewrite.AssertionRewritingHook(request.config)
    spec = hook.find_spec("test_one", [str(tmp_path)])
    assert spec is not None
    monkeypatch.setattr(rewrite, "_rewrite_test", None)  # it is not compiled again
    loaded = importlib.util.module_from_spec(spec)
    hook.exec_module(loaded)
    with pytest.raises(AssertionError, match="assert 1 == 2"):
        loaded.test_one()


def test_a_module_that_has_changed_is_compiled_again(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    module = tmp_path / "test_one.py"
    kept = rewrite.get_cache_dir(module) / f"{module.stem}{rewrite.PYC_TAIL}"
    for source in ("first = 1\n", "second = 2\n"):
        module.write_text(source)
        compile_modules([module], request.config)
        if source == "first = 1\n":
            at = kept.stat().st_mtime - 10
            os.utime(kept, (at, at))
    found = rewrite._read_pyc(module, kept)
    assert found is not None
    assert "second" in found.co_names
