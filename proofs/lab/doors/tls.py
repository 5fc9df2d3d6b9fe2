"""Providers whose TLS does not hold: not one byte of a request may reach them, least of all the key."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count, product
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from proofs.lab.doors.knocking import Book, asked, at_once
from proofs.lab.doors.stage import AT_ONCE, Canary
from proofs.lab.marking_upstream import PROVIDER_KEY, SPEAKERS, MarkingUpstream, mark, provider_table
from proofs.lab.questions import CLIENTS, question, whole
from proofs.served import Served
from wireglot_core.dialects.registry import DialectName

_DAY: Final = datetime.timedelta(days=1)
_WELL: Final = "well"
_DOWNGRADE: Final = "downgrade"


class Certificate(NamedTuple):
    """How one is made. `by`: who signs it; the trusted authority, one nobody knows, a mere server, itself."""

    names: tuple[str, ...] = ("127.0.0.1",)
    by: str = "trusted"
    begins: int = -1
    ends: int = 30
    common: str = "127.0.0.1"
    usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.SERVER_AUTH
    versions: tuple[ssl.TLSVersion, ssl.TLSVersion] = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    ciphers: str = ""


BAD: Final = {
    "self-signed": Certificate(by="itself"),
    "of an unknown authority": Certificate(by="unknown"),
    "signed by a server's certificate": Certificate(by="server"),
    "another name": Certificate(("example.org",)),
    "another address": Certificate(("127.0.0.2",)),
    "a name that begins alike": Certificate(("127.0.0.1.example.org",)),
    "a wildcard for an address": Certificate(("*.0.0.1",)),
    "a wildcard for all": Certificate(("*",)),
    "the right name only as common name": Certificate(()),
    "expired": Certificate(begins=-30, ends=-1),
    "not valid yet": Certificate(begins=1, ends=30),
    "for clients only": Certificate(usage=ExtendedKeyUsageOID.CLIENT_AUTH),
    "TLS 1.0": Certificate(versions=(ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1), ciphers="ALL:@SECLEVEL=0"),
    "TLS 1.1": Certificate(
        versions=(ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_1), ciphers="ALL:@SECLEVEL=0"
    ),
    "no cipher but those without a certificate": Certificate(
        versions=(ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2), ciphers="aNULL:@SECLEVEL=0"
    ),
    "no cipher but NULL": Certificate(
        versions=(ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2), ciphers="eNULL:@SECLEVEL=0"
    ),
}


_SIGNS_OTHERS: Final = x509.KeyUsage(
    digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
    key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
)  # fmt: skip


class Authority:
    def __init__(self, name: str, *, issuer: Authority | None = None, is_authority: bool = True) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        by = issuer or self
        built = _begun(self.name, by.name, self.key, -1, 30)
        built = built.add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        built = built.add_extension(_SIGNS_OTHERS, critical=True) if is_authority else built
        built = _by(built, by.key)
        self.certificate = built.sign(by.key, hashes.SHA256())
        self.above = [] if issuer is None else [self.certificate]

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, begins: int, ends: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begins * _DAY)
        .not_valid_after(now + ends * _DAY)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _by(built: x509.CertificateBuilder, issuer: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    """From 3.13 on Python refuses certificates that do not say whose key has signed them (RFC 5280)."""
    said = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key())
    return built.add_extension(said, critical=False)


def served_with(given: Certificate, authorities: dict[str, Authority], place: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, given.common)])
    by = authorities.get(given.by)
    built = _begun(subject, by.name if by else subject, key, given.begins, given.ends)
    if given.names:
        named = x509.SubjectAlternativeName([_general(name) for name in given.names])
        built = built.add_extension(named, critical=False)
    built = built.add_extension(x509.ExtendedKeyUsage([given.usage]), critical=False)
    built = _by(built, by.key if by else key)
    made = built.sign(by.key if by else key, hashes.SHA256())
    chain = [made, *(by.above if by else ())]
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    place.write_bytes(secret + b"".join(each.public_bytes(serialization.Encoding.PEM) for each in chain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if given.ciphers:
        context.set_ciphers(given.ciphers)
    context.minimum_version, context.maximum_version = given.versions
    context.load_cert_chain(place)
    return context


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


class Stage(NamedTuple):
    port: int
    names: tuple[str, ...]
    """Of all providers."""
    upstreams: dict[str, MarkingUpstream]
    plain: Canary
    """Speaks no TLS where https is configured, and is where a redirect would lead to."""


@asynccontextmanager
async def _staged(folder: Path) -> AsyncIterator[Stage]:
    trusted = Authority("trusted")
    authorities = {
        "trusted": trusted,
        "unknown": Authority("unknown"),
        "server": Authority("127.0.0.1", issuer=trusted, is_authority=False),
    }
    (folder / "authority.pem").write_bytes(trusted.pem)
    plain, upstreams, ports = Canary(), {}, {}
    ports["no TLS at all"] = await plain.start()
    for place, (name, given) in enumerate({_WELL: Certificate(), _DOWNGRADE: Certificate(), **BAD}.items()):
        upstreams[name] = MarkingUpstream(record=True)
        context = served_with(given, authorities, folder / f"{place}.pem")
        ports[name] = await upstreams[name].start(context)
    there = b"http://127.0.0.1:%d/" % ports["no TLS at all"]
    away = b"HTTP/1.1 307 Elsewhere\r\nlocation: %b\r\ncontent-length: 0\r\n\r\n" % there
    upstreams[_DOWNGRADE].ways[_DOWNGRADE] = lambda said, data: away
    tables = [
        provider_table(_named(name, speaker), speaker, f"https://127.0.0.1:{port}", AT_ONCE)
        for place, (name, port) in enumerate(ports.items())
        for speaker in (SPEAKERS if name == _WELL else _speakers(place))
    ]
    toml = '[server]\nlog = "off"\n[providers]\ndiscover = false\n' + "".join(tables)
    served = Served(folder / "gateway", toml, environ={"SSL_CERT_FILE": str(folder / "authority.pem")})
    async with AsyncExitStack() as stack:
        stack.push_async_callback(plain.stop)
        for each in upstreams.values():
            stack.push_async_callback(each.stop)
        try:
            await asyncio.to_thread(served.start)
            yield Stage(served.port, tuple(ports), upstreams, plain)
        finally:
            await asyncio.to_thread(served.stop)


def _speakers(place: int) -> tuple[DialectName, ...]:
    """One for each bad provider, in turn: a gateway with four for each would take long to start."""
    return (SPEAKERS[place % len(SPEAKERS)],)


def _named(name: str, speaker: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", f"{name.lower()}-{speaker}")


async def trial(book: Book, folder: Path) -> None:
    async with _staged(folder) as stage:
        numbers = count(1)

        async def ask(name: str, client: DialectName, speaker: DialectName, streamed: bool) -> int:
            way = _DOWNGRADE if name == _DOWNGRADE else "well"
            asking = question(client, f"{_named(name, speaker)}/any", f"Say {mark(1, next(numbers), way)}")
            path, body = asking if streamed else whole(*asking)
            return (await asked(stage.port, "POST", path, msgspec.json.encode(body))).status

        async def one(vector: tuple[str, DialectName, DialectName, bool]) -> None:
            name, client, speaker, streamed = vector
            upstream = stage.upstreams.get(name)
            before = upstream.bytes if upstream is not None and name != _DOWNGRADE else 0
            status = await ask(name, client, speaker, streamed)
            book.counts[f"status {status}"] += 1
            problem = f"status {status}" if status < 400 else ""
            if upstream is not None and name != _DOWNGRADE and upstream.bytes > before:
                problem = f"{upstream.bytes - before} bytes were said"
            if PROVIDER_KEY.encode() in stage.plain.heard or b"HTTP/1." in stage.plain.heard:
                problem = "the key was said in the open"
            book.knocked(f"{client} to {speaker}: {name}", problem)

        vectors = [
            (name, client, speaker, streamed)
            for place, name in enumerate(stage.names)
            for client in CLIENTS
            for speaker in _speakers(place)
            for streamed in (False, True)
            if name != _WELL
        ]
        await at_once(book.some(vectors), one, most=4)
        for client, speaker in product(CLIENTS, SPEAKERS):
            book.right(f"{client} to {speaker}", await ask(_WELL, client, speaker, False) == 200)
        seen = stage.upstreams[_WELL].seen or []
        book.right("the key arrives", all(PROVIDER_KEY.encode() in each.head for each in seen) and bool(seen))
        reached = [name for name in BAD if stage.upstreams[name].connections]
        book.counts["bytes of requests that a bad provider read"] = sum(
            stage.upstreams[name].bytes for name in BAD
        )
        book.counts["bad providers that completed a handshake"] = len(reached)
