"""What the URLs of PostgreSQL and Redis may ask for, and what is refused in a plain line before anybody is called."""

from __future__ import annotations

import ssl
from pathlib import Path

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
