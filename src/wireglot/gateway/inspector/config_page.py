"""Changes of the gateway itself from the inspector: keys of providers, and the configuration file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from wireglot.gateway import config
from wireglot.gateway.config.edit import (
    MAX_BYTES,
    ConfigSource,
    EditRefused,
    HiddenLines,
    beyond_models,
    changed_text,
    content_of,
    digest_of,
    parsed,
    why_unwritable,
    write,
)
from wireglot.gateway.config.kept_keys import forget, keep, kept_file, read_kept
from wireglot.gateway.config.problems import ConfigError
from wireglot.gateway.config.provider_keys import ProviderKey, provider_keys
from wireglot.gateway.config.providers import SENDABLE
from wireglot.gateway.config.urls import is_loopback
from wireglot.gateway.config.watch import check_reload
from wireglot.gateway.errors import RequestError, invalid_value
from wireglot.gateway.observe.log import Note
from wireglot.gateway.observe.redact import secrets_of
from wireglot.gateway.relay.key_checks import KeyChecker, ProviderAnswer
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.request.viewer import InspectorHandler, Viewer
from wireglot.gateway.settings import Credential, Provider, Settings
from wireglot.http.redaction import Redactor
from wireglot.http.transport import Transport

# Characters of a key that the page stores.
_MAX_KEY_LETTERS: Final = 16 * 1024
# Changes of one request to the configuration.
_MAX_CHANGES: Final = 100
_STATUSES: Final = {
    "file_changed": 409,
    "file_unreadable": 409,
    "file_unwritable": 409,
    "hidden_value_moved": 400,
    "not_editable": 400,
}
_APPLY_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.05


class ConfigPages:
    """`current`: returns the current settings. `transport`: to providers."""

    def __init__(
        self,
        source: ConfigSource,
        current: Callable[[], Settings],
        transport: Transport | None,
        note: Note,
    ) -> None:
        self._source = source
        self._current = current
        self._transport = transport
        self._note = note
        self._one_at_a_time = asyncio.Lock()
        self.handlers: Final[Mapping[str, InspectorHandler]] = {
            "config.get": _guarded(self._get),
            "config.check": _guarded(self._check),
            "config.write": _guarded(self._write),
            "providers.try": _guarded(self._try),
            "providers.keep": _guarded(self._keep),
            "providers.forget": _guarded(self._forget),
        }

    # The configuration file.

    async def _get(self, page: PageRequest, viewer: Viewer) -> None:
        path = self._source.file()
        why = self._why_fixed(path)
        content = self._content(path) if path is not None and not why else b""
        page.send(
            {
                "path": str(path) if path is not None else "",
                "exists": self._source.effective is not None,
                "why_fixed": why,
                "may_change_all": self._may_change_all(viewer),
                "overridden": self._source.variables(),
                "digest": digest_of(content),
                "text": (await asyncio.to_thread(self._hidden, content, page.settings)).text,
            }
        )

    async def _check(self, page: PageRequest, viewer: Viewer) -> None:
        """The result of a change, and its problems. Nothing is written."""
        path, content, hidden = await asyncio.to_thread(self._edited, page)
        problems: list[dict[str, str]] = []
        notes: list[str] = []
        text = await asyncio.to_thread(self._wanted_text, page, hidden, content)
        try:
            after = await asyncio.to_thread(self._loaded, path, text, page.settings, content, viewer)
            notes = [each for each in after.notes if each not in page.settings.notes]
            notes += [f"provider {name} is now off" for name in _gone(page.settings, after)]
        except ConfigError as error:
            problems = [
                {"path": each.path, "expected": each.expected, "found": each.found} for each in error.problems
            ]
        # For long texts these take seconds, which must not block other requests.
        page.send(
            {
                "digest": digest_of(content),
                "text": (await asyncio.to_thread(self._hidden, text.encode(), page.settings)).text,
                "difference": await asyncio.to_thread(hidden.difference, text.replace("\r\n", "\n")),
                "problems": problems,
                "notes": notes,
            }
        )

    async def _write(self, page: PageRequest, viewer: Viewer) -> None:
        async with self._one_at_a_time:
            path, content, hidden = await asyncio.to_thread(self._edited, page)
            text = await asyncio.to_thread(self._wanted_text, page, hidden, content)
            try:
                await asyncio.to_thread(self._loaded, path, text, page.settings, content, viewer)
            except ConfigError as error:
                raise RequestError("bad", str(error), code="config_invalid", param="text") from None
            before = self._current()
            await asyncio.to_thread(write, self._source, path, digest_of(content), text.encode())
            self._note("info", "configuration written", **_by(page, viewer), path=str(path))
            page.send({"digest": digest_of(text.encode()), "applied": await self._applied(before)})

    def _why_fixed(self, path: Path | None) -> str:
        if self._source.why_fixed:
            return self._source.why_fixed
        if path is None:
            return "no configuration directory: the environment sets no home directory"
        return why_unwritable(path)

    def _edited(self, page: PageRequest) -> tuple[Path, bytes, HiddenLines]:
        """The file's content, which must be the one that the page has shown."""
        path = self._source.file()
        if why := self._why_fixed(path):
            raise _refusal(EditRefused(why, "file_unwritable"))
        assert path is not None
        content = self._content(path)
        if page.document().get("digest") != digest_of(content):
            raise EditRefused(
                f"{path} was changed by another program in the meantime: load it again", "file_changed"
            )
        return path, content, self._hidden(content, page.settings)

    def _content(self, path: Path) -> bytes:
        """Content that would be approved together with a change must have been approved itself."""
        content = content_of(path)
        if content and self._source.why_not is not None and (why := self._source.why_not(content)):
            raise EditRefused(why, "file_unreadable")
        return content

    def _wanted_text(self, page: PageRequest, hidden: HiddenLines, content: bytes) -> str:
        document = page.document()
        text, changes = document.get("text"), document.get("changes")
        if changes is not None:
            return changed_text(content.decode("utf-8", "replace"), _changes(changes))
        if type(text) is not str or len(text.encode()) > MAX_BYTES:
            raise invalid_value("text", f"the file's text, {MAX_BYTES} bytes at most, or changes")
        restored = hidden.restored(text.replace("\r\n", "\n"))  # with the browser's line ends
        return restored.replace("\n", "\r\n") if b"\r\n" in content else restored

    def _loaded(self, path: Path, text: str, settings: Settings, content: bytes, viewer: Viewer) -> Settings:
        """Loads it like `wireglot config check` and a reload. Raises ConfigError."""
        after = parsed(text.encode(), path)
        if not self._may_change_all(viewer):
            try:
                before = parsed(content, path)
            except ConfigError as error:  # the values that a change would remove are unknown
                raise RequestError(
                    "permission",
                    f"the file cannot be read: replacing it from this page requires the admin secret. "
                    f"Edit {path} instead: {error}",
                    code="admin_needed",
                ) from None
            if beyond := beyond_models(before, after):
                raise RequestError(
                    "permission",
                    f"{', '.join(beyond)}: changing this from this page requires the admin secret, "
                    "and a gateway that listens on loopback; without it only models, prices and losses can "
                    f"be changed. Edit {path} instead",
                    code="admin_needed",
                )
        found = config.load(
            path,
            environ=self._source.environ,
            overrides=self._source.overrides,
            create_secret=False,
            content=text.encode(),
        )
        check_reload(settings, found, self._source.bound())
        return found

    def _may_change_all(self, viewer: Viewer) -> bool:
        """Whether the viewer may change everything: a configuration can send keys and files of this machine
        anywhere."""
        return viewer.access == "admin" and is_loopback(self._current().server.host)

    def _hidden(self, content: bytes, settings: Settings) -> HiddenLines:
        redactor = Redactor(secrets_of(settings), list(settings.providers))
        return HiddenLines(content.decode("utf-8", "replace").replace("\r\n", "\n"), redactor)

    async def _applied(self, before: Settings) -> bool:
        """Whether this process has loaded what was written."""
        self._source.reload()
        ends = time.monotonic() + _APPLY_SECONDS
        while self._current() is before and time.monotonic() < ends:
            await asyncio.sleep(_LOOK_SECONDS)
        return self._current() is not before

    # Keys of providers.

    async def _try(self, page: PageRequest, viewer: Viewer) -> None:
        """Test the key that is in effect."""
        provider = page.settings.providers.get(page.asked.ids[0])
        if provider is None:
            raise _no_provider("no such provider is on", "provider_off")
        credential = next(iter(provider.credentials), None)
        page.send(_described(await self._asked(provider, credential), provider))

    async def _keep(self, page: PageRequest, viewer: Viewer) -> None:
        document = page.document()
        key, unchecked = document.get("key"), document.get("unchecked", False)
        if type(key) is not str or len(key) > _MAX_KEY_LETTERS or not SENDABLE.fullmatch(key.strip()):
            raise invalid_value("key", "a key: plain ASCII without spaces")
        if type(unchecked) is not bool:
            raise invalid_value("unchecked", "true or false")
        async with self._one_at_a_time:
            key, named, place = key.strip(), self._named(page), self._place()
            provider = self._with_key(named, key)
            credential = next((each for each in provider.credentials if each.secret.value == key), None)
            answer = None if unchecked else await self._asked(provider, credential)
            if answer is not None and answer.verdict != "good":
                page.send({**_described(answer, provider), "kept": False})
                return
            before = self._current()
            await asyncio.to_thread(_stored, partial(keep, place, named.keeps_as, key))
            self._note(
                "info",
                "provider key kept",
                peer=page.head.peer,
                caller=viewer.access,
                provider=named.provider,
            )
            described = _described(answer, provider) if answer is not None else {"sentence": "kept, untried"}
            applied = await self._applied(before)
            gone = _gone(before, self._current()) if applied else []
            page.send({**described, "kept": True, "applied": applied, "off": gone})

    async def _forget(self, page: PageRequest, viewer: Viewer) -> None:
        async with self._one_at_a_time:
            named, place = self._named(page), self._place()
            if not named.kept:
                raise RequestError("bad", f"no key of {named.provider} is stored", code="no_kept_key")
            left = {name: each for name, each in read_kept(place, []).items() if name != named.kept}
            try:
                self._settings(self._source.environ, kept=left)
            except ConfigError as error:
                raise RequestError(
                    "bad", f"the configuration needs this key: {error}", code="key_needed"
                ) from None
            before = self._current()
            await asyncio.to_thread(_stored, partial(forget, place, named.kept))
            self._note(
                "info",
                "provider key removed",
                peer=page.head.peer,
                caller=viewer.access,
                provider=named.provider,
            )
            page.send({"kept": False, "applied": await self._applied(before)})

    def _named(self, page: PageRequest) -> ProviderKey:
        name = page.asked.ids[0]
        found = provider_keys(page.settings, self._source.environ).get(name)
        if found is None:
            raise _no_provider("there is no such provider", "provider_unknown")
        if not found.variables or found.state in ("unneeded", "configuration"):
            where = "its key is in the configuration" if found.state == "configuration" else "it needs no key"
            raise RequestError("bad", f"{name}: {where}", code="no_key_wanted")
        return found

    def _place(self) -> Path:
        place = kept_file(self._source.environ)
        if self._source.why_fixed or place is None:
            why = self._source.why_fixed or "the environment sets no home directory, so no key can be stored"
            raise RequestError("bad", why, code="cannot_keep")
        return place

    def _with_key(self, named: ProviderKey, key: str) -> Provider:
        environ = {**self._source.environ, **named.trying(key)}
        try:
            found = self._settings(environ)
            provider = found.providers.get(named.provider)
            if provider is None:
                raise RequestError("bad", _why_off(named, found), code="provider_off")
            return provider
        except ConfigError as error:
            raise RequestError("bad", f"the configuration: {error}", code="config_invalid") from None

    def _settings(self, environ: Mapping[str, str], **more: Any) -> Settings:
        path = self._source.effective
        content = self._content(path) if path is not None else None
        return config.load(
            path,
            environ=environ,
            overrides=self._source.overrides,
            create_secret=False,
            content=content,
            **more,
        )

    async def _asked(self, provider: Provider, credential: Credential | None) -> ProviderAnswer:
        if self._transport is None or not provider.spec.base_url.startswith(("http:", "https:")):
            raise RequestError("bad", f"{provider.name} runs in this process: there is no key to check")
        return await KeyChecker(self._transport, time.time, None).ask(provider, credential)


def _gone(before: Settings, after: Settings) -> list[str]:
    """Providers that are off after a change. The demo is on only while there is no other."""
    return [name for name in before.providers if name not in after.providers]


def _no_provider(message: str, code: str) -> RequestError:
    return RequestError("bad", message, code=code).with_status(404)


def _why_off(named: ProviderKey, settings: Settings) -> str:
    head = f"provider {named.provider} is off: "
    note = next((each[len(head) :] for each in settings.notes if each.startswith(head)), "")
    return (
        f"{named.provider} needs more than a key: {note}"
        if note
        else (f"{named.provider} is off in {settings.source}: add [providers.{named.provider}] there first")
    )


def _by(page: PageRequest, viewer: Viewer) -> dict[str, str]:
    return {"peer": page.head.peer, "caller": viewer.access}


def _described(answer: ProviderAnswer, provider: Provider) -> dict[str, Any]:
    title = provider.spec.title
    is_keyless = answer.outcome == "taken" and not provider.credentials
    return {
        "outcome": answer.outcome,
        "verdict": answer.verdict,
        "sentence": f"{title} answers" if is_keyless else answer.sentence(title),
        "milliseconds": answer.milliseconds,
        "models": len(answer.models),
    }


def _changes(value: object) -> list[tuple[list[str], Any]]:
    """Changes of rules, and of the choice of a provider's models: `{"path": ["models", NAME], "value":
    ...}`."""
    expected = "a list of {path, value}, with paths below models or providers"
    if type(value) is not list or not 0 < len(value) <= _MAX_CHANGES:
        raise invalid_value("changes", expected)
    found: list[tuple[list[str], Any]] = []
    for each in value:
        path: Any = each.get("path") if type(each) is dict else None
        is_path = type(path) is list and 2 <= len(path) <= 3 and all(type(name) is str for name in path)
        if not is_path or path[0] not in ("models", "providers") or "value" not in each:
            raise invalid_value("changes", expected)
        found.append((path, each["value"]))
    return found


def _stored(work: Callable[[], object]) -> None:
    """Raises EditRefused if the disk or the keyring fails."""
    try:
        work()
    except OSError as fault:
        raise EditRefused(f"the key file: {fault.strerror or fault}", "file_unwritable") from None


def _refusal(refused: EditRefused) -> RequestError:
    error = RequestError("bad", str(refused), code=refused.code)
    return error.with_status(_STATUSES[refused.code])


def _guarded(handler: Callable[[PageRequest, Viewer], Awaitable[None]]) -> InspectorHandler:
    """For the admin, and for local users while no one needs a key."""

    async def guarded(page: PageRequest, viewer: Viewer) -> None:
        if viewer.access == "key":
            viewer.need_admin()
        try:
            await handler(page, viewer)
        except EditRefused as refused:
            raise _refusal(refused) from None

    return guarded
