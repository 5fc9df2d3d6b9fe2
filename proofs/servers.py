"""Private PostgreSQL and Redis servers for tests: their own directory and port, gone when they are closed.

    with PostgresServer() as postgres, RedisServer() as redis:
        print(postgres.url, redis.url)

With `authority=trustme.CA()` they speak TLS, Redis nothing else. Several that belong
together: proofs/server_groups.py.

They can be hurt: `kill()` (as power loss would), `pause()` (alive and silent), `restart()`.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

import trustme

READY_WITHIN = 30.0
_PASSWORD = "a-test-password"


def find_postgres() -> Path | None:
    """The directory of `initdb` and `postgres`: Debian keeps them out of PATH."""
    places = [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    if shutil.which("pg_config"):
        answer = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=False)
        places.append(Path(answer.stdout.strip()))
    places += sorted(map(Path, glob.glob("/usr/lib/postgresql/*/bin")), key=_major, reverse=True)
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    return None


def find_redis() -> str | None:
    """WIREGLOT_REDIS_SERVER names one of two that are here: `valkey-server`."""
    if named := os.environ.get("WIREGLOT_REDIS_SERVER"):
        return shutil.which(named)
    return shutil.which("redis-server") or shutil.which("valkey-server")


def free_port() -> int:
    """Below those the kernel gives to anybody: nobody else gets it while the server is down."""
    while True:
        port = secrets.choice(range(15_000, 32_000))
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Server(ABC):
    """One child process in a directory of its own."""

    at_once = signal.SIGKILL

    def __init__(self, name: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix=f"wireglot-{name}-"))
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def certify(self, authority: trustme.CA | None) -> None:
        """`self.certificate`, `self.key` and, for clients, `self.authority`."""
        self.certificate = self.directory / "server.crt"
        self.key = self.directory / "server.key"
        self.authority = self.directory / "authority.crt"
        self.encrypted = authority is not None
        if authority is None:
            return
        issued = authority.issue_cert("127.0.0.1", "localhost")
        self.certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        self.key.write_bytes(issued.private_key_pem.bytes())
        self.key.chmod(0o600)
        authority.cert_pem.write_to_path(self.authority)

    @abstractmethod
    def command(self) -> list[str]: ...

    @abstractmethod
    def answers(self) -> bool: ...

    def start(self) -> None:
        log = (self.directory / "log").open("ab")
        with log:
            # A session of its own, so that Ctrl-C in the terminal does not reach the server before the tests.
            self.process = subprocess.Popen(
                self.command(), cwd=self.directory, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + READY_WITHIN
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop(signal.SIGKILL)
                raise RuntimeError(f"{type(self).__name__} did not start:\n{self._log_tail()}")
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(how)
            self.process.send_signal(signal.SIGCONT)
        try:
            self.process.wait(READY_WITHIN)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def pause(self) -> None:
        """Alive, and silent: connections are accepted by the kernel and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, which: signal.Signals) -> None:
        for process in self._family():
            with contextlib.suppress(ProcessLookupError):  # a server's processes come and go
                os.kill(process, which)

    def close(self) -> None:
        try:
            self.resume()
            self.stop(self.at_once)
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def hand_over(self) -> None:
        """The directory to the user that it runs as, where that is another."""
        if os.geteuid() == 0:
            owner = _other_user()
            for path in (self.directory, *self.directory.iterdir()):
                os.chown(path, owner.pw_uid, owner.pw_gid)

    def _as_user(self) -> list[str]:
        """PostgreSQL and PgBouncer refuse to run as root."""
        if os.geteuid() != 0:
            return []
        owner = _other_user()
        if shutil.which("setpriv"):
            return ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
        return ["runuser", "-u", owner.pw_name, "--"]

    def _family(self) -> list[int]:
        """The process and its children, the parent first: it must not start more of them meanwhile."""
        if self.process is None:
            return []
        parent = self.process.pid
        children = []
        for process in _processes():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == parent:
                    children.append(process)
        return [parent, *children]

    def _log_tail(self) -> str:
        return (self.directory / "log").read_text(errors="replace")[-2000:]


class PostgresServer(Server):
    """`durable=False` leaves fsync out: much quicker, and right wherever power loss is not the point."""

    # An end without a checkpoint that still gives its shared memory back.
    at_once = signal.SIGQUIT

    def __init__(
        self,
        *,
        durable: bool = False,
        settings: tuple[str, ...] = (),
        authority: trustme.CA | None = None,
    ) -> None:
        super().__init__("postgres")
        self.certify(authority)
        found = find_postgres()
        if found is None:
            raise RuntimeError("there is no PostgreSQL here")
        self.binaries = found
        self.data = self.directory / "data"
        self.password = _PASSWORD
        quick = () if durable else ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
        tls = (f"ssl_cert_file={self.certificate}", f"ssl_key_file={self.key}") if self.encrypted else ()
        self.settings = (*quick, *tls, "max_connections=60", "shared_buffers=32MB", *settings)

    @property
    def url(self) -> str:
        verified = f"?sslmode=verify-full&sslrootcert={self.authority}" if self.encrypted else ""
        return f"postgresql://wireglot:{self.password}@127.0.0.1:{self.port}/postgres{verified}"

    def start(self) -> None:
        if not self.data.exists():
            self._initialise()
        super().start()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT is PostgreSQL's fast shutdown; its SIGTERM waits for the clients to leave."""
        if how == signal.SIGKILL:
            self._kill_family()
        super().stop(how)

    def command(self) -> list[str]:
        # No unix socket: its path would have to be short and the directory writable for another user.
        encrypted = f"ssl={'on' if self.encrypted else 'off'}"
        settings = ("listen_addresses=127.0.0.1", "unix_socket_directories=", encrypted, *self.settings)
        options = [word for setting in settings for word in ("-c", setting)]
        return [
            *self._as_user(),
            str(self.binaries / "postgres"),
            "-D",
            str(self.data),
            "-p",
            str(self.port),
            *options,
        ]

    def answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False  # no need to start a program that finds out
        probe = [str(self.binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(probe, check=False).returncode == 0

    def _initialise(self) -> None:
        """A copy of what `initdb` made before, with these binaries: ten times as fast."""
        made = _initialised(self.binaries)
        if not os.access(made, os.R_OK):
            self._run_initdb()
            _keep(self.data, made)
            return
        subprocess.run(["cp", "-Rp", str(made), str(self.data)], check=True)
        self.hand_over()
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", _other_user().pw_name, str(self.data)], check=True)

    def _run_initdb(self) -> None:
        secret = self.directory / "password"
        secret.write_text(self.password)
        self.hand_over()
        initdb = [
            str(self.binaries / "initdb"),
            "-D",
            str(self.data),
            "-U",
            "wireglot",
            "-E",
            "UTF8",
            "--no-locale",
        ]
        subprocess.run(
            [*self._as_user(), *initdb, "--no-sync", "-A", "scram-sha-256", f"--pwfile={secret}"],
            check=True,
            cwd=self.directory,
            stdout=subprocess.DEVNULL,
        )

    def _kill_family(self) -> None:
        """Its children outlive a killed parent for a moment, and while they do the data cannot be opened.

        They are known by where they stand, not by their parent: one that was started between the look and the
        shot belongs to nobody any more.
        """
        while left := [process for process in _processes() if _stands_in(process, self.data)]:
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.005)


class RedisServer(Server):
    """`durable=True` writes every command to disk before it answers, so that a restart forgets nothing."""

    def __init__(
        self,
        *,
        durable: bool = False,
        password: str = "",
        settings: tuple[str, ...] = (),
        authority: trustme.CA | None = None,
    ) -> None:
        super().__init__("redis")
        self.certify(authority)
        found = find_redis()
        if found is None:
            raise RuntimeError("there is no Redis or Valkey here")
        self.binary = found
        self.password = password
        self.settings = (*(("--appendonly", "yes", "--appendfsync", "always") if durable else ()), *settings)

    @property
    def url(self) -> str:
        secret = f":{self.password}@" if self.password else ""
        if self.encrypted:
            return f"rediss://{secret}127.0.0.1:{self.port}/0?ssl_ca_certs={self.authority}"
        return f"redis://{secret}127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        settings = [
            *self.listening(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            str(self.directory),
        ]
        if self.password:
            settings += ["--requirepass", self.password]
        return [self.binary, *settings, *self.settings]

    def listening(self) -> list[str]:
        if not self.encrypted:
            return ["--port", str(self.port)]
        words = ["--port", "0", "--tls-port", str(self.port), "--tls-auth-clients", "no"]
        words += ["--tls-cert-file", str(self.certificate), "--tls-key-file", str(self.key)]
        return [*words, "--tls-ca-cert-file", str(self.authority)]

    def answers(self) -> bool:
        """While it reads its files it says so; ready is PONG, or that a password is needed."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as plain, self._wrapped(plain) as line:
                line.sendall(b"PING\r\n")
                return line.recv(64).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False

    def _wrapped(self, line: socket.socket) -> socket.socket:
        if not self.encrypted:
            return line
        context = ssl.create_default_context(cafile=str(self.authority))
        return context.wrap_socket(line, server_hostname="127.0.0.1")


def _initialised(binaries: Path) -> Path:
    """A data directory that no server has used yet; it goes with the environment."""
    program = binaries / "initdb"
    kind = f"{program} {program.stat().st_mtime_ns} {_PASSWORD}"
    return Path(sys.prefix) / f"postgres-{hashlib.sha256(kind.encode()).hexdigest()[:16]}"


def _keep(data: Path, made: Path) -> None:
    """Several processes may do so at once: the first one's stays."""
    with (
        contextlib.suppress(OSError, subprocess.CalledProcessError),
        tempfile.TemporaryDirectory(dir=made.parent) as folder,
    ):
        copy = Path(folder) / "data"
        subprocess.run(["cp", "-Rp", str(data), str(copy)], check=True)
        copy.rename(made)


def _processes() -> list[int]:
    return [int(path.rpartition("/")[2]) for path in glob.glob("/proc/[0-9]*")]


def _stands_in(process: int, folder: Path) -> bool:
    """One that is dead and only waits for its parent to look stands nowhere."""
    try:
        return os.readlink(f"/proc/{process}/cwd") == str(folder)
    except OSError:
        return False


def _other_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError("PostgreSQL cannot run as root and there is neither a user postgres nor nobody")


def _major(place: Path) -> int:
    version = place.parent.name
    return int(version) if version.isdigit() else 0
