"""The protocol of signing in, for clients: metadata (RFC 8414), device authorization (RFC 8628), tokens
(RFC 6749) and revocation (RFC 7009)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from wireglot.gateway.errors import RequestError
from wireglot.gateway.login.device_codes import (
    CODE_SECONDS,
    INTERVAL_SECONDS,
    DeviceCodes,
    NotYet,
    TooMany,
    shown_code,
)
from wireglot.gateway.login.oidc import ProviderDown
from wireglot.gateway.login.replies import (
    BUSY,
    UNCACHED,
    Handler,
    OAuthError,
    base_url,
    form_fields,
    retry_after,
)
from wireglot.gateway.login.tokens import Granted, SignInRefused, SignInTokens
from wireglot.gateway.observe.log import Note
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.settings import LoginSettings, Settings
from wireglot.stores import StoreDown

_DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
_REFRESH_GRANT: Final = "refresh_token"
# Characters of the name that a device gives itself.
_MAX_SURFACE: Final = 64


class TokenEndpoints:
    def __init__(
        self, codes: DeviceCodes, tokens: SignInTokens, note: Note, *, settle_seconds: float
    ) -> None:
        """`settle_seconds`: after this time all processes know a new token."""
        self._codes = codes
        self._tokens = tokens
        self._note = note
        self._settle_seconds = settle_seconds
        self._handlers: Final[dict[str, Handler]] = {
            "login.metadata": self._metadata,
            "login.device_authorization": self._device_authorization,
            "login.token": self._token,
            "login.revoke": self._revoke,
        }

    def serves(self, verb: str) -> bool:
        return verb in self._handlers

    async def answer(self, page: PageRequest, login: LoginSettings) -> None:
        try:
            await self._handlers[page.asked.verb](page, login)
            return
        except OAuthError as given:
            problem = given
        except TooMany as many:
            problem = OAuthError("slow_down", BUSY, 429, many.wait)
        except StoreDown:
            problem = OAuthError("temporarily_unavailable", "the gateway's store is not available", 503, 2)
        except ProviderDown as down:
            self._note("error", "identity provider not usable", detail=str(down))
            problem = OAuthError("temporarily_unavailable", "the identity provider cannot be reached", 503, 2)
        except RequestError as refused:
            problem = OAuthError("temporarily_unavailable", str(refused), refused.status, 2)
        document = {"error": problem.error}
        if problem.description:
            document["error_description"] = problem.description
        headers = [*UNCACHED, *([retry_after(problem.wait)] if problem.wait else [])]
        page.send(document, problem.status, headers)

    async def _metadata(self, page: PageRequest, login: LoginSettings) -> None:
        base = base_url(page.head, login)
        page.send(
            {
                "issuer": base,
                "device_authorization_endpoint": f"{base}/oauth/device_authorization",
                "token_endpoint": f"{base}/oauth/token",
                "revocation_endpoint": f"{base}/oauth/revoke",
                "grant_types_supported": [_DEVICE_GRANT, _REFRESH_GRANT],
                "response_types_supported": [],
                "token_endpoint_auth_methods_supported": ["none"],
                "revocation_endpoint_auth_methods_supported": ["none"],
            },
            more=[("cache-control", "no-store")],
        )

    async def _device_authorization(self, page: PageRequest, login: LoginSettings) -> None:
        base = base_url(page.head, login)
        surface = form_fields(page).get("surface", "")
        if len(surface) > _MAX_SURFACE or not surface.isprintable():
            surface = ""
        device_code, request = await self._codes.begin(surface, page.head.peer)
        code = shown_code(request.user_code)
        document: dict[str, Any] = {
            "device_code": device_code,
            "user_code": code,
            "verification_uri": f"{base}/device",
            "verification_uri_complete": f"{base}/device?user_code={code}",
            "expires_in": CODE_SECONDS,
            "interval": INTERVAL_SECONDS,
        }
        if login.notice:
            document["login_notice"] = login.notice
        page.send(document, more=UNCACHED)

    async def _token(self, page: PageRequest, login: LoginSettings) -> None:
        form = form_fields(page)
        match form.get("grant_type", ""):
            case grant if grant == _DEVICE_GRANT:
                granted = await self._with_code(page, form.get("device_code", ""))
            case grant if grant == _REFRESH_GRANT:
                token = form.get("refresh_token", "")
                if not token:
                    raise OAuthError("invalid_request", "refresh_token is missing")
                renewed = await self._tokens.renew(token, page.head.peer, page.settings)
                if renewed is None:
                    raise OAuthError("invalid_grant", "sign in again", 401)
                granted = renewed
            case _:
                raise OAuthError("unsupported_grant_type")
        await self._settled(page.settings)
        document: dict[str, Any] = {
            "access_token": granted.access_token,
            "token_type": "Bearer",
            "expires_in": granted.seconds,
            "refresh_token": granted.refresh_token,
        }
        if "@" in granted.owner:
            document["email"] = granted.owner
        page.send(document, more=UNCACHED)

    async def _with_code(self, page: PageRequest, device_code: str) -> Granted:
        if not device_code:
            raise OAuthError("invalid_request", "device_code is missing")
        try:
            request, decision = await self._codes.poll(device_code)
            return await self._tokens.issue(
                decision.parent, request.surface, page.head.peer, page.settings, decision.grant
            )
        except NotYet as not_yet:
            # It is repeated every few seconds until the user has decided.
            page.record.routine = not_yet.error in ("authorization_pending", "slow_down")
            raise OAuthError(not_yet.error, status=429 if not_yet.error == "slow_down" else 400) from None
        except SignInRefused as refused:
            raise OAuthError("access_denied", str(refused)) from None

    async def _revoke(self, page: PageRequest, login: LoginSettings) -> None:
        token = form_fields(page).get("token", "")
        if not token:
            raise OAuthError("invalid_request", "token is missing")
        await self._tokens.revoke(token, page.head.peer)
        page.send({}, more=UNCACHED)

    async def _settled(self, settings: Settings) -> None:
        """Wait until all processes know a new token: a client uses it at once, and takes a 401 for final."""
        store = settings.store
        is_shared = bool(store.shared.value) or store.url.value.startswith("postgres")
        if is_shared or settings.server.workers > 1:
            await asyncio.sleep(self._settle_seconds)
