"""What must hold of a container: it starts read-only as nobody, answers keys, and keeps what it was given."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

from proofs.container.box import Box

HELLO = {"model": "demo-gemini", "max_tokens": 99, "messages": [{"role": "user", "content": "Say hello"}]}
STORED = {"model": "demo", "input": "Say hello", "store": True}


def check(box: Box, say: Callable[[str], None]) -> None:
    """Raises AssertionError where something does not hold."""
    box.start({})
    box.wait_until_healthy()
    say("starts read-only with one volume and no key, and is healthy")

    _is_nobody_and_may_write_nowhere_else(box)
    say("its user is nobody, without capabilities, and can write to the volume only")

    refused = box.ask("POST", "/v1/messages", HELLO)
    assert refused.status == 401, refused
    made = box.run("wireglot", "keys", "create", "ada", "--json")
    assert made.returncode == 0, made.stderr
    key = key_of(made.stdout)
    box.wait_until_known(key)
    answer = box.ask("POST", "/v1/messages", HELLO, key)
    assert answer.status == 200, answer
    assert answer.body["content"][0]["type"] == "text", answer
    say("refuses who has no key, and answers the one that `wireglot keys create` has made")

    stored = box.ask("POST", "/v1/responses", STORED, key)
    assert stored.status == 200, stored
    kept = f"/v1/responses/{stored.body['id']}"

    status = box.end(signal.SIGTERM)
    assert status == 0, (status, box.log())
    box.start({})
    box.wait_until_healthy()
    assert box.ask("GET", kept, key=key).body["id"] == stored.body["id"]
    say("ends in good order when it is asked to, and the next one has its keys and responses")

    assert box.end(signal.SIGKILL) != 0
    box.start({"WIREGLOT_WORKERS": "2"})
    box.wait_until_healthy()
    assert box.ask("GET", kept, key=key).status == 200
    assert box.ask("POST", "/v1/messages", HELLO, key).status == 200
    used = box.run("wireglot", "usage", "--by", "key", "--json")
    assert used.returncode == 0, used.stderr
    assert "ada" in used.stdout
    say("has them after kill -9, too, with two workers, and knows what was used")
    assert box.end(signal.SIGTERM) == 0, box.log()


def as_a_group(box: Box, volume: Path, group: int) -> None:
    """fsGroup: the volume belongs to root, and the container may write to it by its group only."""
    os.chown(volume, 0, group)
    volume.chmod(0o2775)
    box.start({})
    box.wait_until_healthy()
    assert box.end(signal.SIGTERM) == 0, box.log()


def _is_nobody_and_may_write_nowhere_else(box: Box) -> None:
    who = box.run("python", "-c", "import os; print(os.getuid(), os.getgid(), os.getgroups())")
    assert who.stdout.split()[:2] == ["8484", "8484"], (who.stdout, who.stderr)
    rights = box.run("grep", "-E", "^(Cap(Prm|Eff|Bnd)|NoNewPrivs)", "/proc/1/status").stdout
    assert {line.split()[1] for line in rights.splitlines() if line.startswith("Cap")} == {"0" * 16}, rights
    assert "NoNewPrivs:\t1" in rights, rights
    for place in ("/", "/etc", "/opt/wireglot", "/tmp", "/usr/local", "/var/tmp"):
        written = box.run("sh", "-c", f": > {place}/written")
        assert written.returncode != 0, place
    assert (
        box.run("sh", "-c", ": > /var/lib/wireglot/written && rm /var/lib/wireglot/written").returncode == 0
    )


def key_of(text: str) -> str:
    return str(json.loads(text)["key"])
