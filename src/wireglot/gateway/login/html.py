"""The verification page: plain forms, no script. Everything from outside is escaped text."""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from wireglot.gateway.login.device_codes import DeviceRequest, shown_code

STYLE_PATH: Final = "/device/page.css"
STYLE: Final = """:root{color-scheme:light dark;--paper:#f6f7f9;--sheet:#fff;--ink:#171a21;--soft:#4d5567;\
--line:#dfe3ea;--accent:#3148d8;--accent-ink:#fff;--serious:#b3201f;--serious-soft:#fdeae9}
@media(prefers-color-scheme:dark){:root{--paper:#101319;--sheet:#181c25;--ink:#e7eaf1;--soft:#b4bccb;\
--line:#2c3341;--accent:#93a5ff;--accent-ink:#10142a;--serious:#ff9b94;--serious-soft:#421e1f}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",\
Roboto,"Noto Sans","Liberation Sans",sans-serif}
main{max-width:30rem;margin:8vh auto 2rem;padding:1.75rem;background:var(--sheet);\
border:1px solid var(--line);border-radius:10px}
h1{font-size:1.3rem;margin:0 0 .75rem}
h2{font-size:1rem;margin:1.5rem 0 .5rem;padding-top:1rem;border-top:1px solid var(--line)}
p{margin:.5rem 0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem;margin:1rem 0}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}
label{display:block;margin:.75rem 0 .25rem;color:var(--soft)}
input,select{width:100%;font:inherit;padding:.5rem .6rem;color:inherit;background:var(--paper);\
border:1px solid var(--line);border-radius:6px}
input.code{font:1.4rem/1.4 ui-monospace,Menlo,Consolas,monospace;letter-spacing:.1em;text-transform:uppercase}
button,a.main{display:inline-block;text-decoration:none;font:inherit;\
margin:1rem .5rem 0 0;padding:.5rem 1.1rem;color:inherit;background:none;\
border:1px solid var(--line);border-radius:6px;cursor:pointer}
button.main,a.main{color:var(--accent-ink);background:var(--accent);border-color:var(--accent)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.problem{padding:.6rem .8rem;color:var(--serious);background:var(--serious-soft);border-radius:6px}
"""


def _page(title: str, body: str) -> bytes:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="robots" content="noindex">'
        f'<title>{html.escape(title)} - Wireglot</title><link rel="stylesheet" href="{STYLE_PATH}">'
        f"</head><body><main><h1>{html.escape(title)}</h1>{body}</main></body></html>\n"
    ).encode()


def _form(token: str, action: str, fields: str, button: str, *, main: bool = True) -> str:
    look = ' class="main"' if main else ""
    return (
        '<form method="post" action="/device" autocomplete="off">'
        f'<input type="hidden" name="csrf" value="{html.escape(token)}">{fields}'
        f'<button name="action" value="{action}"{look}>{html.escape(button)}</button></form>'
    )


def _problem(problem: str) -> str:
    return f'<p class="problem" role="alert">{html.escape(problem)}</p>' if problem else ""


def code_page(token: str, user_code: str = "", problem: str = "") -> bytes:
    """Asks for the code. One from the link is filled in, but still needs confirmation."""
    field = (
        '<label for="code">The code that your application shows</label>'
        f'<input id="code" class="code" name="user_code" value="{html.escape(user_code[:32])}" '
        'maxlength="32" required autocapitalize="characters" spellcheck="false">'
    )
    warning = (
        "<p>Continue only if you started this sign-in yourself. "
        "Do not enter a code that someone sent you.</p>"
    )
    return _page("Sign in a device", _problem(problem) + warning + _form(token, "code", field, "Continue"))


def _details(request: DeviceRequest) -> str:
    at = datetime.fromtimestamp(request.at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    rows = (
        ("Code", shown_code(request.user_code)),
        ("Application", request.surface or "not named"),
        ("Requested", at),
        ("From address", request.address or "this machine"),
    )
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{html.escape(value)}</dd>" for name, value in rows) + "</dl>"


def sign_in_page(
    token: str, request: DeviceRequest, ways: Sequence[str], provider: str, problem: str = ""
) -> bytes:
    """Shows the client, and the ways to sign in."""
    parts = [
        _problem(problem),
        "<p>This application asks to use the gateway in your name:</p>",
        _details(request),
    ]
    if "oidc" in ways:
        where = html.escape(provider)
        parts.append(f'<p><a class="main" href="/device/sign-in">Sign in with {where}</a></p>')
    if "key" in ways or "admin" in ways:
        kinds = [name for way, name in (("key", "client key"), ("admin", "admin secret")) if way in ways]
        what = " or ".join(kinds).capitalize()
        field = (
            f'<label for="key">{what}</label><input id="key" type="password" name="key" required '
            'autocomplete="off">'
        )
        parts.append(_form(token, "key", field, "Approve" if "admin" not in ways else "Continue"))
    parts.append(_form(token, "deny", "", "This was not me: deny", main=False))
    return _page("Approve this device?", "".join(parts))


def approve_page(token: str, request: DeviceRequest, owner: str) -> bytes:
    body = (
        f"<p>You are signed in as <strong>{html.escape(owner)}</strong>. Approve this application?</p>"
        + _details(request)
        + _form(token, "approve", "", "Approve")
        + _form(token, "deny", "", "Deny", main=False)
    )
    return _page("Approve this device?", body)


def admin_page(token: str, request: DeviceRequest, groups: Sequence[str], problem: str = "") -> bytes:
    options = "".join(f"<option>{html.escape(group)}</option>" for group in ("", *groups))
    fields = (
        '<label for="name">Name of the key: an existing one, or a new one for this person</label>'
        '<input id="name" name="name" required maxlength="64">'
        f'<label for="group">Group of a new key</label><select id="group" name="group">{options}</select>'
    )
    body = (
        _problem(problem)
        + "<p>You are the administrator. For whom is this device?</p>"
        + _details(request)
        + _form(token, "assign", fields, "Approve")
        + _form(token, "deny", "", "Deny", main=False)
    )
    return _page("Approve this device?", body)


def message_page(title: str, text: str, link: tuple[str, str] | None = None) -> bytes:
    """`link`: path and text of a link below."""
    more = f'<p><a href="{html.escape(link[0])}">{html.escape(link[1])}</a></p>' if link is not None else ""
    return _page(title, f"<p>{html.escape(text)}</p>{more}")
