"""What the URLs of PostgreSQL and Redis may ask for, and what is refused in a plain line before anybody is called."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import pytest
import trustme

from tests.tiers import rows
from wireglot.stores.base import StoreUnusable
from wireglot.stores.postgres import address as postgres
from wireglot.stores.redis import address as redis

HERE = "postgresql://me:a-s3cret@"


@pytest.fixture
def authority(tmp_path: Path) -> str:
    path = tmp_path / "authority.pem"
    trustme.CA().cert_pem.write_to_path(path)
    return str(path)


@rows(
    ("url", "hosts"),
    [
        (HERE + "a/db", ()),
        (HERE + "a:5433/db?host=x,y", ()),
        (HERE + "a,b/db", (("a", None), ("b", None))),
        (HERE + "a:1,[::1]:2,c/db", (("a", 1), ("::1", 2), ("c", None))),
        ("postgresql:///db?host=a,b&port=1,2", (("a", 1), ("b", 2))),
        ("postgresql:///db?host=a,b&port=7", (("a", 7), ("b", 7))),
    ],
)
def test_several_hosts_of_postgresql(url: str, hosts: tuple[object, ...]) -> None:
    assert postgres.read_address(url).hosts == hosts


def test_of_several_hosts_the_one_that_takes_writes_is_wanted() -> None:
    assert postgres.read_address(HERE + "a,b/db").writer == "read-write"
    assert postgres.read_address(HERE + "a,b/db?target_session_attrs=primary").writer == "primary"
    assert postgres.read_address(HERE + "a/db").writer == "any"
    assert postgres.read_address(HERE + "a,b/db?pooler=transaction").writer == "any"


def test_who_names_an_authority_gets_certificate_and_name_verified(authority: str) -> None:
    for options in (f"sslrootcert={authority}", "sslmode=verify-full", "sslrootcert=system"):
        context = postgres.read_address(f"{HERE}a/db?{options}").tls
        assert context is not None
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    for options in (f"sslmode=require&sslrootcert={authority}", "sslmode=verify-ca"):
        context = postgres.read_address(f"{HERE}a/db?{options}").tls
        assert context is not None
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, False)
    for options in ("", "sslmode=require", "sslmode=disable"):
        assert postgres.read_address(f"{HERE}a/db?{options}").tls is None


def test_rediss_verifies_certificate_and_name_unless_configured_otherwise(authority: str) -> None:
    for url in ("rediss://h", f"valkeys://h?ssl_ca_certs={authority}", "rediss+sentinel://h/one"):
        context = redis.read_address(url).tls
        assert context is not None
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    trusting = redis.read_address("rediss://h?ssl_cert_reqs=none").tls
    assert trusting is not None
    assert (trusting.verify_mode, trusting.check_hostname) == (ssl.CERT_NONE, False)
    assert redis.read_address("redis://h").tls is None


def test_sentinels_and_what_they_are_asked_for() -> None:
    url = "redis+sentinel://me:a%2Fb@a,b:26380,[::1]/the%20one/3?prefix=p:&sentinel_password=x&db=2"
    read = redis.read_address(url)
    assert read.sentinels == (("a", 26379), ("b", 26380), ("::1", 26379))
    assert (read.service, read.prefix, read.sentinel_password) == ("the one", "p:", "x")
    assert read.url == "redis://me:a%2Fb@primary/3?db=2"


@rows(
    ("url", "reason"),
    [
        (HERE + "a/db?sslmode=a-s3cret", "sslmode must be one of disable"),
        (HERE + "a/db?sslmode=prefer&sslrootcert=/a-s3cret", "sslrootcert has no effect with sslmode=prefer"),
        (HERE + "a/db?sslrootcert=/a-s3cret", "the file that sslrootcert names"),
        (HERE + "a/db?sslmode=verify-full&sslcert=/a-s3cret", "the file that sslcert names"),
        (HERE + f"a/db?sslrootcert={__file__}", "cannot be used"),
        (
            HERE + "a/db?sslmode=verify-ca&ssl_min_protocol_version=a-s3cret",
            "ssl_min_protocol_version must be",
        ),
        (HERE + "a,b/db?target_session_attrs=standby", "target_session_attrs must be one of any"),
        (HERE + "a/db?pooler=a-s3cret", "pooler must be transaction"),
        (HERE + "a,:a-s3cret/db", "not a PostgreSQL URL"),
        ("postgresql:///db?host=a,b&port=1,2,3", "not a PostgreSQL URL"),
    ],
)
def test_what_is_not_understood_of_a_postgresql_url(url: str, reason: str) -> None:
    with pytest.raises(StoreUnusable, match=rf"store\.url: .*{reason}") as reported:
        postgres.read_address(url)
    assert "s3cret" not in str(reported.value)


@rows(
    ("url", "reason"),
    [
        ("redis://:a-s3cret@h?ssl_ca_certs=/x", "needs a rediss:// URL"),
        ("rediss://:a-s3cret@h?ssl_ca_certs=/a-s3cret", "the file that ssl_ca_certs names"),
        (f"rediss://:a-s3cret@h?ssl_ca_certs={__file__}", "cannot be used"),
        ("rediss://h?ssl_cert_reqs=a-s3cret", "ssl_cert_reqs must be one of required"),
        ("rediss://h?ssl_a-s3cret=1", "these are known: ssl_ca_certs"),
        ("redis+sentinel://:a-s3cret@a,b", "the primary's name"),
        ("redis+sentinel://:a-s3cret@a:a-s3cret/one", "each Sentinel is a host"),
        ("redis://h?sentinel_password=a-s3cret", r"needs a redis\+sentinel"),
    ],
)
def test_what_is_not_understood_of_a_redis_url(url: str, reason: str) -> None:
    with pytest.raises(StoreUnusable, match=rf"store\.shared: .*{reason}") as reported:
        redis.read_address(url)
    assert "s3cret" not in str(reported.value)


@rows(
    ("url", "dsn", "schema", "pooled"),
    [
        (HERE + "a/db", HERE + "a/db", "wireglot", False),
        (HERE + "a/db?schema=s", HERE + "a/db", "s", False),
        (HERE + "a/db?pooler=transaction&x=1&y=", HERE + "a/db?x=1&y=", "wireglot", True),
        (HERE + "a/db?schema=" + "x" * 63, HERE + "a/db", "x" * 63, False),
    ],
)
def test_what_is_ours_in_a_postgresql_url_is_not_for_the_driver(
    url: str, dsn: str, schema: str, pooled: bool
) -> None:
    read = postgres.read_address(url)
    assert (read.dsn, read.schema, read.pooled) == (dsn, schema, pooled)


def test_a_schema_is_a_name_that_postgresql_does_not_cut() -> None:
    for schema in ("", "x" * 64, "ä" * 32, "a%00b"):
        with pytest.raises(StoreUnusable, match="schema must be a name of 1 to 63 bytes"):
            postgres.read_address(f"{HERE}a/db?schema={schema}")
    assert postgres.read_address(HERE + "a/db?schema=a%22b").quoted_schema == '"a""b"'


@rows("attrs", ["any", "primary", "read-write"])
def test_each_way_to_find_the_writer_is_taken(attrs: str) -> None:
    assert postgres.read_address(f"{HERE}a/db?target_session_attrs={attrs}").writer == attrs


@rows("mode", ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"])
def test_every_mode_of_libpq_is_known(mode: str, authority: str) -> None:
    assert (postgres.read_address(f"{HERE}a/db?sslmode={mode}").tls is not None) is mode.startswith("verify")
    with_authority = f"{HERE}a/db?sslmode={mode}&sslrootcert={authority}"
    if mode in ("disable", "allow", "prefer"):
        with pytest.raises(StoreUnusable, match=f"no effect with sslmode={mode}; use verify-full"):
            postgres.read_address(with_authority)
    else:
        assert postgres.read_address(with_authority).tls is not None


def test_versions_of_tls_and_files_of_a_postgresql_url(authority: str, tmp_path: Path) -> None:
    base = f"{HERE}a/db?sslrootcert={authority}"
    plain = postgres.read_address(base).tls
    assert plain is not None
    assert plain.minimum_version == ssl.TLSVersion.TLSv1_2
    assert plain.maximum_version == ssl.TLSVersion.MAXIMUM_SUPPORTED
    newer = postgres.read_address(
        f"{base}&ssl_min_protocol_version=TLSv1.3&ssl_max_protocol_version=TLSv1.3"
    ).tls
    assert newer is not None
    assert (newer.minimum_version, newer.maximum_version) == (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3)
    older = postgres.read_address(f"{base}&ssl_max_protocol_version=TLSv1.2").tls
    assert older is not None
    assert older.maximum_version == ssl.TLSVersion.TLSv1_2
    for name in ("sslcert", "sslkey", "sslcrl"):
        with pytest.raises(StoreUnusable, match=f"the file that {name} names cannot be read"):
            postgres.read_address(f"{base}&{name}={tmp_path / 'nothing'}")
    made = trustme.CA().issue_cert("client")
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    made.cert_chain_pems[0].write_to_path(certificate)
    made.private_key_pem.write_to_path(key)
    assert postgres.read_address(f"{base}&sslcert={certificate}&sslkey={key}").tls is not None
    with pytest.raises(StoreUnusable, match="cannot be used"):
        postgres.read_address(f"{base}&sslcert={certificate}")


def test_the_usual_authority_is_looked_for_where_libpq_looks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PGSSLROOTCERT", raising=False)
    assert postgres._usual_authority() == "system"
    (tmp_path / ".postgresql").mkdir()
    (tmp_path / ".postgresql/root.crt").write_text("")
    assert postgres._usual_authority() == str(tmp_path / ".postgresql/root.crt")
    monkeypatch.setenv("PGSSLROOTCERT", "/named")
    assert postgres._usual_authority() == "/named"


def test_what_a_server_said_weighs_more_than_that_another_is_away() -> None:
    problems = [
        TimeoutError(),
        OSError(),
        asyncpg.TargetServerAttributeNotMatched("x"),
        asyncpg.PostgresError("x"),
    ]
    assert [postgres._weight(problem) for problem in problems] == [0, 1, 2, 3]


class _Connection:
    terminated = False

    def terminate(self) -> None:
        self.terminated = True


def _connecting(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, object]
) -> tuple[postgres.HostConnector, list[tuple[str, int | None, float, str]]]:
    """A connector whose hosts answer, fail, or are silent (None)."""
    asked: list[tuple[str, int | None, float, str]] = []

    async def connect(
        dsn: str, *, host: str, port: int | None, timeout: float, target_session_attrs: str, **_: object
    ) -> object:
        asked.append((host, port, timeout, target_session_attrs))
        answer = answers[host]
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(asyncpg, "connect", connect)
    return postgres.HostConnector(postgres.read_address(HERE + "a,b:2/db")), asked


def test_the_host_that_was_right_is_asked_first_and_then_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = _Connection(), _Connection()
    answers: dict[str, object] = {"a": None, "b": mine}
    connector, asked = _connecting(monkeypatch, answers)

    async def scenario() -> None:
        assert await connector.connect("dsn", timeout=10.0) is mine
        assert asked == [("a", None, 6.0, "read-write"), ("b", 2, 6.0, "read-write")]
        asked.clear()
        assert await connector.connect("dsn", timeout=10.0) is mine
        assert asked == [("b", 2, 4.0, "read-write")]
        asked.clear()
        answers.update(a=other, b=OSError("gone"))
        assert await connector.connect("dsn", timeout=10.0) is other
        assert [host for host, *_ in asked] == ["b", "a", "b"]
        asked.clear()
        answers["a"] = TimeoutError()
        with pytest.raises(OSError, match="gone"):
            await connector.connect("dsn", timeout=10.0)
        with pytest.raises(OSError, match="gone"):
            await connector.connect("dsn", timeout=10.0)
        assert [host for host, *_ in asked] == ["a", "a", "b", "a", "b"]

    asyncio.run(scenario())


def test_of_two_hosts_that_answer_at_once_one_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"a": _Connection(), "b": _Connection()}
    connector, _ = _connecting(monkeypatch, dict(both))
    used = asyncio.run(connector.connect("dsn", timeout=1.0))
    assert sorted(each.terminated for each in both.values()) == [False, True]
    assert not used.terminated


@rows(
    ("url", "read", "prefix"),
    [
        ("redis://h", "redis://h", "wireglot:"),
        ("valkey://u:p@h:1/2?db=3&prefix=", "redis://u:p@h:1/2?db=3", ""),
        ("rediss://h?ssl_cert_reqs=none&x=1", "redis://h?x=1", "wireglot:"),
        ("redis+sentinel://h/one", "redis://primary/", "wireglot:"),
        ("valkey+sentinel://u@h/one/7", "redis://u@primary/7", "wireglot:"),
    ],
)
def test_what_is_ours_in_a_redis_url_is_not_for_the_driver(url: str, read: str, prefix: str) -> None:
    found = redis.read_address(url)
    assert (found.url, found.prefix) == (read, prefix)
    if "sentinel" not in url:
        assert (found.sentinels, found.service) == ((), "")


def test_who_asks_the_sentinels_has_a_name_and_a_password_of_its_own() -> None:
    found = redis.read_address("redis+sentinel://h/one?sentinel_username=u&sentinel_password=p")
    assert (found.sentinel_username, found.sentinel_password) == ("u", "p")
    plain = redis.read_address("redis+sentinel://h/one")
    assert (plain.sentinel_username, plain.sentinel_password, plain.tls) == ("", "", None)
    with pytest.raises(StoreUnusable, match="needs a redis\\+sentinel"):
        redis.read_address("redis://h?sentinel_username=u")


@rows(
    ("options", "mode", "by_name"),
    [
        ("", ssl.CERT_REQUIRED, True),
        ("ssl_cert_reqs=optional", ssl.CERT_OPTIONAL, True),
        ("ssl_cert_reqs=none", ssl.CERT_NONE, False),
        *(
            (f"ssl_check_hostname={word}", ssl.CERT_REQUIRED, False)
            for word in ("0", "f", "False", "n", "NO")
        ),
        ("ssl_check_hostname=yes", ssl.CERT_REQUIRED, True),
    ],
)
def test_how_a_redis_server_is_known(options: str, mode: ssl.VerifyMode, by_name: bool) -> None:
    for scheme in ("rediss", "valkeys"):
        context = redis.read_address(f"{scheme}://h?{options}").tls
        assert context is not None
        assert (context.verify_mode, context.check_hostname) == (mode, by_name)


def test_files_of_a_redis_url_are_read(tmp_path: Path, authority: str) -> None:
    for name in ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile"):
        with pytest.raises(StoreUnusable, match=f"the file that {name} names cannot be read"):
            redis.read_address(f"rediss://h?{name}={tmp_path / 'nothing'}")
    made = trustme.CA().issue_cert("client")
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    made.cert_chain_pems[0].write_to_path(certificate)
    made.private_key_pem.write_to_path(key)
    own = f"rediss://h?ssl_ca_certs={authority}&ssl_certfile={certificate}&ssl_keyfile={key}&ssl_password=x"
    assert redis.read_address(own).tls is not None
    with pytest.raises(StoreUnusable, match="a certificate or key cannot be used"):
        redis.read_address(f"rediss://h?ssl_certfile={certificate}")
    with pytest.raises(StoreUnusable, match="a certificate or key cannot be used"):
        redis.read_address("rediss://h?ssl_ca_data=none")
