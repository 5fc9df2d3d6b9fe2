"""What an engine is asked to do: a stand-in writes it down."""

import json
import signal
import stat
import sys
from pathlib import Path, PurePosixPath

import pytest

from proofs.container.box import EngineBox

ENGINE = """#!{python}
import json, sys
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
answers = {{"port": "127.0.0.1:40001\\n[::1]:40001\\n", "inspect": "healthy\\n", "wait": "0\\n"}}
print(answers.get(sys.argv[1], ""), end="")
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def box(tmp_path: Path, log: Path) -> EngineBox:
    engine = tmp_path / "engine"
    engine.write_text(ENGINE.format(python=sys.executable, log=str(log)), encoding="utf-8")
    engine.chmod(engine.stat().st_mode | stat.S_IXUSR)
    return EngineBox(str(engine), "image", "name", PurePosixPath("/var/lib/wireglot"))


def asked(log: Path) -> list[list[str]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def test_a_container_is_started_read_only_without_rights_and_with_its_volume(box, log):
    box.start({"A": "1"})
    _, started = asked(log)
    assert started[:4] == ["run", "--detach", "--name", "name"]
    assert {"--read-only", "no-new-privileges", "ALL", "name:/var/lib/wireglot", "A=1"} <= set(started)
    assert started[-1] == "image"


def test_its_address_health_and_end_are_those_the_engine_tells(box, log):
    assert box.address() == ("127.0.0.1", 40001)
    assert box.is_healthy()
    assert box.end(signal.SIGTERM) == 0
    assert asked(log)[-2:] == [["kill", "--signal", "SIGTERM", "name"], ["wait", "name"]]
