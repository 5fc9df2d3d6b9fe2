"""Private servers that belong together: PostgreSQL and a replica, Redis and Sentinels, PgBouncer.

with PostgresPair() as pair:
    pair.fail_over()            the primary dies, the replica takes its place
    print(pair.url)             names both, before and after
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final, Self

from redis import Redis

from proofs.servers import READY_WITHIN, PostgresServer, RedisServer, Server

SERVICE: Final = "the-primary"
_SENTINELS: Final = 3
_DOWN_AFTER_MS: Final = 1000
_POLL_SECONDS: Final = 0.05


class PostgresReplica(PostgresServer):
    """Follows a primary that runs."""

    def __init__(self, primary: PostgresServer) -> None:
        super().__init__()
        self._primary = primary

    def promote(self) -> None:
        """Returns when it takes writes."""
        psql(self, f"SELECT pg_promote(true, {READY_WITHIN:.0f})")

    def _initialise(self) -> None:
        self.hand_over()
        place = ["-h", "127.0.0.1", "-p", str(self._primary.port), "-U", "wireglot"]
        copy = [str(self.binaries / "pg_basebackup"), *place, "-D", str(self.data), "-R", "-X", "stream"]
        subprocess.run(
            [*self._as_user(), *copy, "--checkpoint=fast", "--no-sync"],
            check=True,
            cwd=self.directory,
            env={**os.environ, "PGPASSWORD": self.password},
        )


class PostgresPair:
    """A primary and a replica that has everything the primary has acknowledged."""

    def __init__(self) -> None:
        self.primary = PostgresServer(durable=True, settings=("fsync=off", "full_page_writes=off"))
        self.replica = PostgresReplica(self.primary)
        self._stack = ExitStack()

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in (self.primary, self.replica))
        return f"postgresql://wireglot:{self.primary.password}@{hosts}/postgres"

    def fail_over(self) -> None:
        self.primary.kill()
        self.replica.promote()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.callback(self.replica.close)
            stack.callback(self.primary.close)
            self.primary.start()
            self.replica.start()
            # Only now: alone it would wait for a replica that is not there yet.
            psql(self.primary, "ALTER SYSTEM SET synchronous_standby_names = '*'")
            psql(self.primary, "SELECT pg_reload_conf()")
            _until(lambda: psql(self.primary, "SELECT sync_state FROM pg_stat_replication") == "sync")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class Sentinel(RedisServer):
    def __init__(self, primary: RedisServer) -> None:
        super().__init__()
        self._configuration = self.directory / "sentinel.conf"
        self._configuration.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {self.directory}\n"
            f"sentinel monitor {SERVICE} 127.0.0.1 {primary.port} 2\n"
            f"sentinel down-after-milliseconds {SERVICE} {_DOWN_AFTER_MS}\n"
            f"sentinel failover-timeout {SERVICE} 5000\n"
            + (f"sentinel auth-pass {SERVICE} {primary.password}\n" if primary.password else "")
        )

    def command(self) -> list[str]:
        return [self.binary, str(self._configuration), "--sentinel"]


class WatchedRedis:
    """A primary, a replica, and three Sentinels that promote it when the primary has gone."""

    def __init__(self, password: str = "a-redis-password") -> None:
        secret = ("--masterauth", password) if password else ()
        self.primary = RedisServer(password=password, settings=secret)
        follow = ("--replicaof", f"127.0.0.1 {self.primary.port}", "--repl-diskless-sync-delay", "0")
        self.replica = RedisServer(password=password, settings=(*secret, *follow))
        self.sentinels = [Sentinel(self.primary) for _ in range(_SENTINELS)]
        self._stack = ExitStack()

    @property
    def url(self) -> str:
        secret = f":{self.primary.password}@" if self.primary.password else ""
        hosts = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{secret}{hosts}/{SERVICE}/0"

    def fail_over(self) -> None:
        """Returns when the Sentinels name the replica."""
        self.primary.kill()
        _until(lambda: all(_named(sentinel) == self.replica.port for sentinel in self.sentinels))

    def __enter__(self) -> Self:
        servers = (self.primary, self.replica, *self.sentinels)
        with ExitStack() as stack:
            for server in servers:
                stack.callback(server.close)
            for server in servers:
                server.start()
            # Before they know the replica and one another there is nobody to promote, and no majority.
            _until(lambda: all(_knows_all(sentinel) for sentinel in self.sentinels))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _named(sentinel: Sentinel) -> int:
    with Redis(port=sentinel.port) as client:
        reported: Any = client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
    return int(reported[1])


def _knows_all(sentinel: Sentinel) -> bool:
    with Redis(port=sentinel.port) as client:
        primary: Any = client.execute_command("SENTINEL MASTER", SERVICE)
        replicas: Any = client.execute_command("SENTINEL SLAVES", SERVICE)
    others = primary["num-other-sentinels"]
    return bool(others == _SENTINELS - 1 and [each.get("master-link-status") for each in replicas] == ["ok"])


def find_pgbouncer() -> str | None:
    """Debian keeps it where only root looks."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")


class PgBouncer(Server):
    """In transaction mode, with fewer connections to the server than its clients have to it."""

    def __init__(self, postgres: PostgresServer, *, connections: int = 3) -> None:
        super().__init__("pgbouncer")
        found = find_pgbouncer()
        if found is None:
            raise RuntimeError("there is no PgBouncer here")
        self._binary = found
        self._password = postgres.password
        self._configuration = self.directory / "pgbouncer.ini"
        users = self.directory / "users"
        users.write_text(f'"wireglot" "{postgres.password}"\n')
        self._configuration.write_text(
            f"[databases]\npostgres = host=127.0.0.1 port={postgres.port}\n"
            "[pgbouncer]\npool_mode = transaction\nlisten_addr = 127.0.0.1\nunix_socket_dir =\n"
            f"listen_port = {self.port}\nauth_type = scram-sha-256\nauth_file = {users}\n"
            f"default_pool_size = {connections}\nserver_login_retry = 1\n"
        )

    @property
    def url(self) -> str:
        return f"postgresql://wireglot:{self._password}@127.0.0.1:{self.port}/postgres?pooler=transaction"

    def start(self) -> None:
        self.hand_over()
        super().start()

    def command(self) -> list[str]:
        return [*self._as_user(), self._binary, str(self._configuration)]

    def answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1):
                return True
        except OSError:
            return False


def psql(server: PostgresServer, statement: str) -> str:
    place = ["-h", "127.0.0.1", "-p", str(server.port), "-U", "wireglot", "-d", "postgres"]
    done = subprocess.run(
        [str(server.binaries / "psql"), *place, "-qAt", "-c", statement],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PGPASSWORD": server.password},
    )
    return done.stdout.strip()


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + READY_WITHIN
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError("the servers did not find one another")
        time.sleep(_POLL_SECONDS)
