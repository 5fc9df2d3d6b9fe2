"""The fleet of deploy/fleet without an engine: gateways in root directories, with this machine's servers.

Each service of the compose file has an address of its own and is called by its name, as in a compose network.
What stands in the file is used as it stands: variables, Redis' command line, nginx.conf.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from proofs.container import compose
from proofs.container.box import HEALTHY_WITHIN_SECONDS, PORT, RootBox, ask
from proofs.container.checks import HELLO, STORED, key_of
from proofs.container.dockerfile import Stage
from proofs.container.network import Network
from proofs.container.root import Root
from proofs.servers import find_postgres, find_redis

FOLDER: Final = Path(__file__).parents[2] / "deploy" / "fleet"
_GATEWAYS: Final = ("wireglot-1", "wireglot-2")
_ENDED_WITHIN_SECONDS: Final = 30.0
_REQUESTS_AFTER_THE_KILL: Final = 20


def missing() -> str:
    """What this machine lacks to be a fleet."""
    found = {"PostgreSQL": find_postgres(), "Redis": find_redis(), "nginx": _nginx()}
    return ", ".join(name for name, where in found.items() if where is None)


def check(root: Root, stage: Stage, work: Path, network: Network, say: Callable[[str], None]) -> None:
    names = ("POSTGRES_PASSWORD", "REDIS_PASSWORD", "WIREGLOT_SECRET", "WIREGLOT_ADMIN_SECRET")
    services = compose.services(FOLDER / "compose.yaml", {name: secrets.token_hex(24) for name in names})
    for name in services:
        network.add(name)
    root.name_hosts(network.addresses)
    with contextlib.ExitStack() as servers:
        servers.enter_context(_postgres(services["postgres"], work, network))
        servers.enter_context(_redis(services["redis"], work, network))
        first, second = (RootBox(name, root, stage, work / name, network) for name in _GATEWAYS)
        for name, box in zip(_GATEWAYS, (first, second), strict=True):
            box.start(services[name]["environment"])
            servers.callback(_end, box)
        first.wait_until_healthy()
        second.wait_until_healthy()
        servers.enter_context(_in_front(work, network, {name: network.addresses[name] for name in _GATEWAYS}))
        say("the fleet starts: two gateways on PostgreSQL and Redis, behind nginx")
        _behaves_as_one(first, second, (network.addresses["nginx"], PORT), services, say)


def _behaves_as_one(
    first: RootBox, second: RootBox, front: tuple[str, int], services: Mapping[str, Any],
    say: Callable[[str], None],
) -> None:  # fmt: skip
    assert ask(front, "POST", "/v1/messages", HELLO).status == 401
    made = first.run("wireglot", "keys", "create", "ada", "--json")
    assert made.returncode == 0, made.stderr
    key = key_of(made.stdout)
    for box in (first, second):
        box.wait_until_known(key)
    stored = first.ask("POST", "/v1/responses", STORED, key)
    assert stored.status == 200, stored
    kept = f"/v1/responses/{stored.body['id']}"
    assert second.ask("GET", kept, key=key).body["id"] == stored.body["id"]
    say("a key made at one opens the other, and a response stored by one is had from the other")

    answer = ask(front, "POST", "/v1/messages", {**HELLO, "stream": True}, key, host=f"localhost:{PORT}")
    assert answer.status == 200, answer
    assert "event: message_stop" in answer.body, answer
    say("a stream comes through nginx whole, under the name that clients call it by")

    first.end(signal.SIGKILL)
    found = [ask(front, "POST", "/v1/messages", HELLO, key).status for _ in range(_REQUESTS_AFTER_THE_KILL)]
    assert found == [200] * _REQUESTS_AFTER_THE_KILL, found
    first.start(services[_GATEWAYS[0]]["environment"])
    first.wait_until_healthy()
    assert first.ask("GET", kept, key=key).status == 200
    say("after kill -9 of one no request fails, and it comes back with everything")


def _end(box: RootBox) -> None:
    if not box.has_ended():
        box.end(signal.SIGTERM)


@contextlib.contextmanager
def _running(command: Sequence[str], log: Path, answers: Callable[[], bool], **rest: Any) -> Iterator[None]:
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, **rest)
    try:
        deadline = time.monotonic() + HEALTHY_WITHIN_SECONDS
        while not answers():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{shlex.join(command)}:\n{log.read_text(encoding='utf-8')}")
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(_ENDED_WITHIN_SECONDS)


@contextlib.contextmanager
def _postgres(service: Mapping[str, Any], work: Path, network: Network) -> Iterator[None]:
    """As the image does it: the database and its user by the names of the variables."""
    reported = service["environment"]
    binaries = find_postgres()
    assert binaries is not None
    owner = pwd.getpwnam("postgres")
    as_owner = ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
    folder, secret = work / "postgres", work / "postgres.password"
    folder.mkdir()
    secret.write_text(reported["POSTGRES_PASSWORD"], encoding="utf-8")
    for place in (folder, secret):
        os.chown(place, owner.pw_uid, owner.pw_gid)
    data = folder / "data"
    made = [
        "--auth=scram-sha-256",
        f"--username={reported['POSTGRES_USER']}",
        f"--pwfile={secret}",
        "--no-sync",
    ]
    subprocess.run(
        [*as_owner, str(binaries / "initdb"), f"--pgdata={data}", *made], check=True, capture_output=True
    )
    with (data / "pg_hba.conf").open("a", encoding="utf-8") as access:
        access.write("host all all 0.0.0.0/0 scram-sha-256\n")
    address = network.addresses["postgres"]
    asked = {
        "PGPASSWORD": reported["POSTGRES_PASSWORD"],
        "PGUSER": reported["POSTGRES_USER"],
        "PGHOST": address,
    }

    def psql(database: str, statement: str) -> bool:
        words = [str(binaries / "psql"), "--no-psqlrc", "--dbname", database, "--command", statement]
        return (
            subprocess.run(words, env={**os.environ, **asked}, capture_output=True, check=False).returncode
            == 0
        )

    server = [str(binaries / "postgres"), "-D", str(data), "-h", "0.0.0.0", "-k", str(folder)]
    there = [*network.joining("postgres"), *as_owner, *server]
    with _running(there, work / "postgres.log", lambda: psql("postgres", "select 1")):
        assert psql("postgres", f"create database {reported['POSTGRES_DB']}")
        yield


@contextlib.contextmanager
def _redis(service: Mapping[str, Any], work: Path, network: Network) -> Iterator[None]:
    name, *options = service["command"]
    assert name == "redis-server"
    server = find_redis()
    assert server is not None
    folder = work / "redis"
    folder.mkdir()
    command = [*network.joining("redis"), server, *options]

    def answers() -> bool:
        return _accepts(network.addresses["redis"], 6379)

    with _running(command, work / "redis.log", answers, cwd=folder):
        yield


@contextlib.contextmanager
def _in_front(work: Path, network: Network, gateways: Mapping[str, str]) -> Iterator[None]:
    """nginx as its image runs it: as user 101, with a /tmp of its own and the file where it looks for it."""
    nginx = _nginx()
    assert nginx is not None
    hosts = work / "nginx.hosts"
    hosts.write_text("".join(f"{address} {name}\n" for name, address in gateways.items()), encoding="utf-8")
    shutil.copy2(FOLDER / "nginx.conf", "/run/nginx.conf")
    script = f"""set -e
mount --bind {shlex.quote(str(hosts))} /etc/hosts
mount -t tmpfs -o mode=1777 tmp /tmp
exec setpriv --reuid=101 --regid=101 --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all \\
  {nginx} -e stderr -c /run/nginx.conf -g 'daemon off;'"""
    there = [*network.joining("nginx"), "unshare", "--mount", "sh", "-c", script]
    address = network.addresses["nginx"]
    with _running(there, work / "nginx.log", lambda: _accepts(address, PORT)):
        yield


def _nginx() -> str | None:
    return shutil.which("nginx") or shutil.which("/usr/sbin/nginx")


def _accepts(host: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
        return True
    return False
