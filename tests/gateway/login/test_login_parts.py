"""The parts of signing in, each alone: cookies, pages, codes, the identity provider's documents and claims."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.gateway.offline import Said, Upstream
from tests.tiers import rows
from wireglot.gateway.login import html, oidc, provider_grants
from wireglot.gateway.login.browser import BrowserSession, BrowserSessions
from wireglot.gateway.login.device_codes import DeviceRequest, network_of, normalized, shown_code
from wireglot.gateway.login.oidc import IdentityProvider, ProviderAttempt, ProviderDown, who
from wireglot.gateway.login.provider_grants import ProviderGrants
from wireglot.gateway.login.tokens import SignInRefused, _made, _names
from wireglot.gateway.settings import LoginSettings, Secret
from wireglot.gateway.state.keys.ring import digest_of
from wireglot.http.transport import Timeouts, TransportFault
from wireglot.stores.records import SignIn
from wireglot.stores.seal import Sealer

HTTPS, HTTP = "https://gateway.example", "http://127.0.0.1:8484"


def test_a_code_as_people_type_and_read_it() -> None:
    assert normalized(" bcdf-ghjk.") == "BCDFGHJK"
    assert normalized("AEIOU BCDF 1234 GHJK") == "BCDFGHJK"
    assert normalized("B" * 70) == "B" * 64
    assert shown_code("BCDFGHJK") == "BCDF-GHJK"


@rows(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.1%eth0", "192.0.2.1"),
        ("nonsense", "nonsense"),
        ("", ""),
    ],
)
def test_what_counts_as_one_address(address: str, network: str) -> None:
    assert network_of(address) == network


# The browser's cookie.


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def sessions() -> tuple[BrowserSessions, Clock]:
    clock = Clock()
    return BrowserSessions(Sealer(b"secret-of-the-gateway-0123456789"), clock), clock


@rows(
    ("base", "name", "secure"), [(HTTPS, "__Host-wireglot-login", True), (HTTP, "wireglot-login-8484", False)]
)
def test_a_session_lives_in_a_cookie_for_ten_minutes(base: str, name: str, secure: bool) -> None:
    made, clock = sessions()
    session = BrowserSession(
        "id", 1600, user_code="BCDFGHJK", parent="p", attempt=ProviderAttempt("s", "n", "v")
    )
    header, value = made.cookie(session, base)
    cookie, *attributes = value.split("; ")
    assert (header, cookie.partition("=")[0]) == ("set-cookie", name)
    assert attributes == ["Max-Age=600", "Path=/", "HttpOnly", "SameSite=Lax"] + ["Secure"] * secure
    assert made.read(f"other=1; {cookie}", base) == session
    assert made.read(cookie, HTTPS if base == HTTP else HTTP) is None
    clock.now = 1599.0
    assert made.read(cookie, base) == session
    assert "Max-Age=1;" in made.cookie(session, base)[1]
    clock.now = 1600.0
    assert made.read(cookie, base) is None
    clock.now = 1700.0
    assert "Max-Age=0;" in made.cookie(session, base)[1]
    gone = made.gone(base)[1].split("; ")
    assert gone == [f"{name}=", "Max-Age=0", "Path=/", "HttpOnly", "SameSite=Lax"] + ["Secure"] * secure


def test_a_cookie_of_another_gateway_or_a_wrong_one_opens_nothing() -> None:
    made, _ = sessions()
    session = made.begin()
    assert session.ends == 1600
    cookie = made.cookie(session, HTTP)[1].split("; ")[0]
    name, _, token = cookie.partition("=")
    other = BrowserSessions(Sealer(b"another-secret-of-a-gateway-01234"), Clock())
    assert other.read(cookie, HTTP) is None
    for wrong in ("", "x", token[:-4], "é" + token, "A" * 4097):
        assert made.read(f"{name}={wrong}", HTTP) is None
    four = "; ".join([f"{name}=x"] * 3)
    assert made.read(f"{four}; {cookie}", HTTP) == session
    assert made.read(f"{four}; {name}=x; {cookie}", HTTP) is None


def test_a_form_is_bound_to_its_browser() -> None:
    made, _ = sessions()
    one, two = made.begin(), made.begin()
    assert one.id != two.id
    assert made.is_ours(one, made.token(one))
    assert not made.is_ours(one, made.token(two))
    assert not made.is_ours(one, "é")


# Its pages.

REQUEST = DeviceRequest("id", "BCDFGHJK", "<Claude>", "192.0.2.1", 1_700_000_000_000)


def test_a_page_escapes_everything_from_outside() -> None:
    for page in (
        html.code_page('"t', '"><script>', "<bad>"),
        html.sign_in_page('"t', REQUEST, ("oidc", "key"), "<idp>", "<bad>"),
        html.approve_page('"t', REQUEST, "<me>"),
        html.admin_page('"t', REQUEST, ["<group>"], "<bad>"),
        html.message_page("<title>", "<text>", ('"/x', "<link>")),
    ):
        text = page.decode()
        for raw in (
            "<script>",
            "<bad>",
            "<idp>",
            "<me>",
            "<group>",
            "<Claude>",
            "<text>",
            "<link>",
            '"t"',
            '"/x',
        ):
            assert raw not in text.replace(f'href="{html.STYLE_PATH}"', "")
        assert text.startswith("<!doctype html>")
        assert '<link rel="stylesheet"' in text


def test_what_the_pages_ask_for() -> None:
    code = html.code_page("tok", "BCDF-GHJK" + "x" * 40).decode()
    assert 'name="csrf" value="tok"' in code
    assert f'value="{("BCDF-GHJK" + "x" * 40)[:32]}"' in code
    assert '<button name="action" value="code" class="main">Continue</button>' in code
    assert 'role="alert"' not in code
    assert 'role="alert">wrong' in html.code_page("tok", problem="wrong").decode()
    approve = html.approve_page("tok", REQUEST, "me").decode()
    assert '<button name="action" value="approve" class="main">Approve</button>' in approve
    assert '<button name="action" value="deny">Deny</button>' in approve
    for shown in ("BCDF-GHJK", "2023-11-14 22:13:20 UTC", "192.0.2.1", "<strong>me</strong>"):
        assert shown in approve
    nameless = html.approve_page("tok", DeviceRequest("id", "BCDFGHJK", "", "", 0), "me").decode()
    assert "<dd>not named</dd>" in nameless
    assert "<dd>this machine</dd>" in nameless
    admin = html.admin_page("tok", REQUEST, ["a", "b"]).decode()
    assert "<option></option><option>a</option><option>b</option>" in admin
    assert 'value="assign"' in admin
    assert "href" not in html.message_page("t", "x").decode().partition("<main>")[2]


@rows(
    ("ways", "label", "button", "link"),
    [
        (("key",), "Client key", "Approve", False),
        (("key", "admin"), "Client key or admin secret", "Continue", False),
        (("admin",), "Admin secret", "Continue", False),
        (("oidc",), "", "", True),
    ],
)
def test_the_ways_to_sign_in(ways: tuple[str, ...], label: str, button: str, link: bool) -> None:
    page = html.sign_in_page("tok", REQUEST, ways, "Google").decode()
    assert ("Sign in with Google" in page) is link
    assert ('type="password"' in page) is bool(label)
    assert f'<label for="key">{label}</label>' in page or not label
    assert f'value="key" class="main">{button}</button>' in page or not label
    assert '<button name="action" value="deny">This was not me: deny</button>' in page


# The identity provider.

ISSUER = "https://idp.example"
LOGIN = LoginSettings(
    issuer=ISSUER, client_id="me&co", client_secret=Secret("s cret"), scopes=("openid", "email")
)
METADATA: dict[str, Any] = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "jwks_uri": f"{ISSUER}/keys",
}
ATTEMPT = ProviderAttempt("state-1", "nonce-1", "verifier-1")


class Provider:
    def __init__(self, **metadata: Any) -> None:
        self.upstream = Upstream()
        self.clock = Clock()
        self.metadata = {**METADATA, **metadata}
        self.idp = IdentityProvider({"https": self.upstream}, self.clock)

    def url(self, login: LoginSettings = LOGIN) -> str:
        self.upstream.say(Said(body=self.metadata))
        return asyncio.run(self.idp.authorization_url(login, ATTEMPT, f"{HTTPS}/back"))

    def exchanged(self, said: Said, login: LoginSettings = LOGIN) -> Any:
        self.upstream.say(Said(body=self.metadata), said)
        return asyncio.run(self.idp.renewed(login, "refresh-1"))


def test_the_browser_is_sent_with_a_challenge() -> None:
    provider = Provider()
    parts = urlsplit(provider.url())
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{ISSUER}/authorize"
    assert dict(parse_qsl(parts.query)) == {
        "response_type": "code",
        "client_id": "me&co",
        "redirect_uri": f"{HTTPS}/back",
        "scope": "openid email",
        "state": "state-1",
        "nonce": "nonce-1",
        "code_challenge": base64.urlsafe_b64encode(hashlib.sha256(b"verifier-1").digest())
        .decode()
        .rstrip("="),
        "code_challenge_method": "S256",
    }
    (sent,) = provider.upstream.sent
    assert (sent.method, sent.url, sent.pool) == (
        "GET",
        f"{ISSUER}/.well-known/openid-configuration",
        "login",
    )
    assert sent.headers == [("accept", "application/json")]
    assert provider.upstream.timeouts == [
        Timeouts(connect=5.0, tls=5.0, first_byte=10.0, idle=10.0, total=15.0)
    ]
    assert (
        Provider(authorization_endpoint=f"{ISSUER}/a?b=c").url().startswith(f"{ISSUER}/a?b=c&response_type=")
    )


def test_documents_of_the_provider_are_kept_for_an_hour() -> None:
    provider = Provider()
    for seconds, fetched in ((0, 1), (3599, 1), (1, 2)):
        provider.clock.now += seconds
        provider.url()
        assert len(provider.upstream.sent) == fetched


@rows(
    ("change", "why"),
    [
        ({"issuer": "https://other.example"}, "the issuer is https://other.example, not the configured one"),
        ({"token_endpoint": "http://idp.example/token"}, "http://idp.example/token is not an https URL"),
        ({"token_endpoint": "http://127.0.0.1/token"}, "http://127.0.0.1/token is not an https URL"),
        ({"jwks_uri": "https://a@idp.example/"}, "https://a@idp.example/ is not an https URL"),
        ({"jwks_uri": "ftp://idp.example/"}, "is not an https URL"),
        ({"jwks_uri": 7}, "Expected `str`"),
    ],
)
def test_a_provider_that_names_a_wrong_endpoint_is_not_used(change: dict[str, Any], why: str) -> None:
    with pytest.raises(ProviderDown, match=why.replace("?", r"\?")) as down:
        Provider(**change).url()
    assert str(down.value).startswith("discovery: ")


def test_a_provider_on_this_machine_needs_no_tls() -> None:
    local = LoginSettings(issuer="http://127.0.0.1:1", client_id="me")
    metadata = {name: value.replace(ISSUER, "http://127.0.0.1:1") for name, value in METADATA.items()}
    provider = Provider(**metadata)
    provider.idp = IdentityProvider({"http": provider.upstream}, provider.clock)
    assert provider.url(local).startswith("http://127.0.0.1:1/authorize?")


@rows(
    ("said", "why"),
    [
        (Said(500, b"{}"), "discovery: status 500"),
        (Said(200, b"nonsense"), "discovery: "),
        (Said(200, b"[]"), "discovery: "),
    ],
)
def test_a_provider_that_answers_wrongly_is_down(said: Said, why: str) -> None:
    provider = Provider()
    provider.upstream.say(said)
    with pytest.raises(ProviderDown, match=why):
        asyncio.run(provider.idp.authorization_url(LOGIN, ATTEMPT, ""))
    away: Any = TransportFault("connect", "no")
    provider.upstream.say(away)
    with pytest.raises(ProviderDown, match=r"/\.well-known/openid-configuration: connect"):
        asyncio.run(provider.idp.authorization_url(LOGIN, ATTEMPT, ""))


@rows(
    ("methods", "basic", "posted"),
    [
        (None, True, False),
        (["client_secret_basic", "client_secret_post"], True, False),
        (["client_secret_post"], False, True),
        (["private_key_jwt"], True, False),
    ],
)
def test_the_secret_goes_where_the_provider_takes_it(methods: Any, basic: bool, posted: bool) -> None:
    provider = Provider(**({"token_endpoint_auth_methods_supported": methods} if methods else {}))
    assert provider.exchanged(Said(body={"refresh_token": "next"})) == (None, "next")
    sent = provider.upstream.sent[-1]
    form = dict(parse_qsl(sent.body.decode()))
    assert (form["grant_type"], form["refresh_token"]) == ("refresh_token", "refresh-1")
    assert (form.get("client_id"), form.get("client_secret")) == (
        ("me&co", "s cret") if posted else (None, None)
    )
    headers = dict(sent.headers)
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    assert headers.get("authorization") == (
        f"Basic {base64.b64encode(b'me%26co:s+cret').decode()}" if basic else None
    )
    public = LoginSettings(issuer=ISSUER, client_id="me")
    provider.exchanged(Said(body={}), public)
    form = dict(parse_qsl(provider.upstream.sent[-1].body.decode()))
    assert (form["client_id"], "client_secret" in form) == ("me", False)


def test_what_the_token_endpoint_refuses() -> None:
    with pytest.raises(SignInRefused, match="has been used or has expired"):
        Provider().exchanged(Said(400, {"error": "invalid_grant"}))
    with pytest.raises(ProviderDown, match="token endpoint: status 400, unauthorized_client"):
        Provider().exchanged(Said(400, {"error": "unauthorized_client"}))
    with pytest.raises(ProviderDown, match="token endpoint: status 500, unreadable text"):
        Provider().exchanged(Said(500, {"error": "\x07"}))
    assert Provider().exchanged(Said(body={"refresh_token": 7})) == (None, "")
    assert Provider().exchanged(Said(body={"refresh_token": "x" * 65536})) == (None, "x" * 65536)
    assert Provider().exchanged(Said(body={"refresh_token": "x" * 65537})) == (None, "")


@rows(
    ("answer", "why"),
    [
        ({"state": "other", "code": "c"}, "begun in another window"),
        ({"code": "c"}, "begun in another window"),
        ({"state": "state-1", "iss": "https://other.example", "code": "c"}, "another identity provider"),
        ({"state": "state-1", "error": "access_denied"}, "did not sign you in"),
        ({"state": "state-1"}, "returned no code"),
    ],
)
def test_an_answer_of_the_provider_that_signs_no_one_in(answer: dict[str, str], why: str) -> None:
    provider = Provider()
    provider.upstream.say(Said(body=provider.metadata))
    with pytest.raises(SignInRefused, match=why):
        asyncio.run(provider.idp.person(LOGIN, ATTEMPT, answer, ""))
    strict = Provider(authorization_response_iss_parameter_supported=True)
    strict.upstream.say(Said(body=strict.metadata))
    with pytest.raises(SignInRefused):
        asyncio.run(strict.idp.person(LOGIN, ATTEMPT, {"state": "state-1", "code": "c"}, ""))


def test_a_code_without_a_token_of_the_person_signs_no_one_in() -> None:
    provider = Provider()
    provider.upstream.say(Said(body=provider.metadata), Said(body={}))
    with pytest.raises(ProviderDown, match="no ID token"):
        asyncio.run(provider.idp.person(LOGIN, ATTEMPT, {"state": "state-1", "code": "c"}, f"{HTTPS}/back"))
    assert dict(parse_qsl(provider.upstream.sent[-1].body.decode())) == {
        "grant_type": "authorization_code",
        "code": "c",
        "redirect_uri": f"{HTTPS}/back",
        "code_verifier": "verifier-1",
    }


def unsigned(**header: Any) -> str:
    parts = [
        base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in (header, {})
    ]
    return ".".join([*parts, ""])


@rows("alg", ["none", "HS256"])
def test_a_token_that_anyone_could_sign_is_refused(alg: str) -> None:
    with pytest.raises(ProviderDown, match=r"renewal: .* not signed with a key pair"):
        Provider().exchanged(Said(body={"id_token": unsigned(alg=alg)}))


@rows("alg", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"])
def test_every_signature_of_a_key_pair_is_checked_with_the_keys_of_the_provider(alg: str) -> None:
    provider = Provider()
    token = unsigned(alg=alg, kid="k1")
    provider.upstream.say(
        Said(body=provider.metadata), Said(body={"id_token": token}), Said(body={"keys": []})
    )
    with pytest.raises(
        ProviderDown, match="renewal: the identity provider's token is signed with an unknown key"
    ):
        asyncio.run(provider.idp.renewed(LOGIN, "refresh-1"))
    assert provider.upstream.sent[-1].url == f"{ISSUER}/keys"


CLAIMS = {"sub": "u1", "email": "Me@Example.com", "email_verified": True, "groups": ["dev", 7]}


@rows(
    ("settings", "claims", "owner", "group"),
    [
        ({}, {}, "Me@Example.com", ""),
        ({}, {"email": None}, "u1", ""),
        ({}, {"email": "a@b@c", "email_verified": False}, "u1", ""),
        ({}, {"email": "a\x07@b"}, "u1", ""),
        ({}, {"email_verified": "true"}, "Me@Example.com", ""),
        ({"require_verified_email": False}, {"email_verified": False}, "Me@Example.com", ""),
        ({"allowed_domains": ("example.com",)}, {}, "Me@Example.com", ""),
        ({"groups": {"ops": "o", "dev": "d"}}, {}, "Me@Example.com", "d"),
        ({"groups": {"ops": "o"}, "default_group": "all"}, {}, "Me@Example.com", "all"),
        ({"groups": {"dev": "d"}, "groups_claim": "roles"}, {"roles": "dev"}, "Me@Example.com", "d"),
        ({}, {"email": "x" * 300 + "@b"}, "x" * 200, ""),
    ],
)
def test_who_a_person_is(settings: dict[str, Any], claims: dict[str, Any], owner: str, group: str) -> None:
    login = LoginSettings(issuer=ISSUER, client_id="me", **settings)
    person = who(login, {**CLAIMS, **claims})
    assert (person.subject, person.owner, person.group) == (f"{ISSUER}\nu1", owner, group)


@rows(
    ("settings", "claims", "why"),
    [
        ({}, {"sub": ""}, "did not return your identity"),
        ({}, {"sub": 7}, "did not return your identity"),
        ({}, {"email_verified": False}, "not verified"),
        ({"allowed_domains": ("other.example",)}, {}, "domain of your e-mail address is not allowed"),
        (
            {"allowed_domains": ("example.com",)},
            {"email": None},
            "domain of your e-mail address is not allowed",
        ),
        ({"groups": {"ops": "o"}}, {}, "not in a group"),
        ({"groups": {"last": "o"}}, {"groups": ["x"] * 1000 + ["last"]}, "not in a group"),
    ],
)
def test_who_may_not_sign_in(settings: dict[str, Any], claims: dict[str, Any], why: str) -> None:
    login = LoginSettings(issuer=ISSUER, client_id="me", **settings)
    with pytest.raises(SignInRefused, match=why):
        who(login, {**CLAIMS, **claims})


def test_attempts_are_of_three_secrets() -> None:
    one, two = oidc.new_attempt(), oidc.new_attempt()
    secrets = {one.state, one.nonce, one.verifier, two.state, two.nonce, two.verifier}
    assert len(secrets) == 6
    assert min(map(len, secrets)) >= 43


# Keys, grants and tokens.


def test_only_public_keys_for_signatures_are_taken() -> None:
    public = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
    listed: list[Any] = [
        {**public, "kid": "good"},
        {**public, "kid": "also", "use": "sig"},
        {**public, "kid": "encrypts", "use": "enc"},
        {"kty": "oct", "kid": "shared", "k": "c2VjcmV0"},
        {"kty": "unknown", "kid": "new"},
        "nonsense",
        public,
    ]
    provider = Provider()
    provider.upstream.say(Said(body={"keys": listed}))
    assert sorted(asyncio.run(provider.idp._fetched_keys(f"{ISSUER}/keys"))) == ["", "also", "good"]
    for wrong in (Said(500, {"keys": []}), Said(body={}), Said(body={"keys": {}})):
        provider.upstream.say(wrong)
        with pytest.raises(ProviderDown, match="keys: status"):
            asyncio.run(provider.idp._fetched_keys(f"{ISSUER}/keys"))


@rows(
    ("known", "age", "id", "fetched"),
    [
        (["a"], 0, "a", False),
        (["a"], 3600, "a", False),
        (["a"], 3601, "a", True),
        (["a"], 30, "b", False),
        (["a"], 31, "b", True),
        ([], 31, None, True),
        (["a"], 31, None, True),
    ],
)
def test_keys_are_fetched_again_when_they_are_old_or_unknown(
    monkeypatch: pytest.MonkeyPatch, known: list[str], age: float, id: str | None, fetched: bool
) -> None:
    idp: Any = IdentityProvider({}, Clock())
    asked = []

    async def fetch(url: str) -> dict[str, Any]:
        asked.append(url)
        return {"a": "new a", "b": "new b"}

    monkeypatch.setattr(idp, "_fetched_keys", fetch)
    cached = SimpleNamespace(
        keys=dict.fromkeys(known, "old"), keys_at=1000.0 - age, metadata=SimpleNamespace(jwks_uri="u")
    )
    try:
        found = asyncio.run(idp._key(LOGIN, cached, id))
    except SignInRefused:
        found = None
    assert bool(asked) is fetched
    assert cached.keys_at == (1000.0 if fetched else 1000.0 - age)
    expected = None if id is None or (id == "b" and not fetched) else f"new {id}" if fetched else "old"
    assert found == expected


def test_a_check_that_nobody_waits_for_leaves_no_error() -> None:
    nothing: Any = None
    grants = ProviderGrants(nothing, nothing, nothing)

    async def work() -> None:
        async def failing() -> None:
            raise ProviderDown("away")

        for task in (asyncio.create_task(failing()), asyncio.create_task(asyncio.sleep(60))):
            grants._checking.add(task)
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            grants._checked(task)
            assert not task._log_traceback
        assert grants._checking == set()

    asyncio.run(work())


def test_a_grant_is_kept_for_as_long_as_a_sign_in_and_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_grants, "now_ms", lambda: 5_000)
    login = LoginSettings(
        issuer=ISSUER, client_id="me", scopes=("openid", "offline_access"), refresh_days=2.0
    )
    kept: list[Any] = []
    asked: list[Any] = []

    class Documents:
        async def put(self, documents: Any) -> None:
            kept.extend(documents)

        async def get(self, owner: str, kind: str, ids: list[str]) -> Any:
            return [each for each in kept if (each.caller, each.kind, [each.id]) == (owner, kind, ids)]

        async def replace(self, document: Any) -> None:
            kept.append(document)

    class Counters:
        free = True

        async def lock(self, name: str, holder: str, seconds: float) -> bool:
            asked.append((name, len(holder), seconds))
            return self.free

        async def unlock(self, name: str, holder: str) -> None:
            asked.append((name, len(holder)))

    class Provider:
        async def renewed(self, login: Any, refresh_token: str) -> tuple[None, str]:
            asked.append(refresh_token)
            return None, "next" if refresh_token == "first" else ""

    counters: Any = Counters()
    documents: Any = Documents()
    idp: Any = Provider()
    grants = ProviderGrants(documents, counters, idp)

    async def work() -> None:
        assert await grants.keep("", login) == ""
        assert await grants.keep("first", LOGIN) == "", "not without offline_access"
        assert kept == []
        id = await grants.keep("first", login)
        (first,) = kept
        assert (len(id), first.id, first.body) == (32, id, b"first")
        assert (first.created, first.expires) == (5_000, 5_000 + 2 * 86_400_000 + 600_000)
        monkeypatch.setattr(provider_grants, "now_ms", lambda: 9_000)
        assert await grants.check(id, login) is None
        assert asked == [(f"login grant {id}", 16, 30.0), "first", (f"login grant {id}", 16)]
        assert (kept[1].body, kept[1].created, kept[1].expires) == (b"next", first.created, first.expires)
        kept.pop(0)
        assert await grants.check(id, login) is None
        assert len(kept) == 1, "without another refresh token the last one stays"
        with pytest.raises(SignInRefused, match="the sign-in is over"):
            await grants.check("other", login)
        assert asked[-1] == ("login grant other", 16), "unlocked"
        counters.free = False
        with pytest.raises(ProviderDown, match="another request renews the same sign-in"):
            await grants.check(id, login)

    asyncio.run(work())


@rows(
    ("hours", "ends", "seconds"),
    [(1.0, 7_200_000, 3600), (1.0, 1_801_500, 1801), (0.5, 7_200_000, 1800), (1.0, 900, 1), (1.0, 0, 1)],
)
def test_a_token_ends_with_its_sign_in_and_not_before_it_begins(
    hours: float, ends: int, seconds: int
) -> None:
    now = 5_000_000
    before = SignIn(key="ada", parent="p", digest="", until=0, family="f", refresh="")
    (access, rotating, lasting), after = _made(before, LoginSettings(token_hours=hours), now, now + ends)
    assert (lasting, after.until) == (seconds, now + seconds * 1000)
    assert (after.digest, after.refresh) == (digest_of(access), digest_of(rotating))
    assert (after.key, after.parent, after.family, len(rotating)) == ("ada", "p", "f", 43)


@rows(
    ("owner", "names"),
    [
        ("Me@Example.com", ["me@example.com", "me@example.com-0123456789ab"]),
        ("me", ["me-0123456789ab"]),
        ("login-me@example.com", ["login-me@example.com-0123456789ab"]),
        ("Ä b@c", ["b@c-0123456789ab"]),
        ("!!!", ["person-0123456789ab"]),
        ("a@" + "x" * 60, ["a@" + "x" * 46 + "-0123456789ab"]),
    ],
)
def test_names_of_people(owner: str, names: list[str]) -> None:
    assert list(_names(owner, "0123456789abcdef")) == names
