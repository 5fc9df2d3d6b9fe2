"""Signing in, in a real browser: its cookies, its fetch metadata, its content security policy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from proofs.identity_provider import IdentityProvider
from tests.gateway.inspector.inspector_kit import KEY
from tests.gateway.login.login_kit import Device, gateway, with_provider
from tests.page.test_accessibility import found_by
from wireglot.testing.live_gateway import LiveGateway


@pytest.fixture(scope="module")
def running() -> Iterator[LiveGateway]:
    ways = 'approval = ["oidc", "key", "admin"]'
    with IdentityProvider() as provider, gateway(with_provider(provider, ways)) as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """What its policy forbids, and errors, fail the test."""
    faults: list[str] = []
    context = browser.new_context(color_scheme="dark")
    found = context.new_page()
    found.set_default_timeout(30_000)
    found.on("pageerror", lambda error: faults.append(str(error)))
    found.on(
        "console", lambda message: faults.append(message.text) if "Content Security" in message.text else None
    )
    yield found
    context.close()
    assert faults == []


def device_at(gateway: LiveGateway) -> Device:
    """By this name the gateway is another site than the identity provider."""
    return Device(gateway, host=f"localhost:{gateway.port}")


def begin(device: Device, page: Page) -> None:
    page.goto(device.begin()["verification_uri_complete"])
    expect(page.get_by_label("The code that your application shows")).to_have_value(device.user_code)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text(device.user_code)).to_be_visible()


def test_with_a_key(running: LiveGateway, page: Page, axe: str):
    device = device_at(running)
    page.goto(device.begin()["verification_uri"])
    assert found_by(axe, page) == []
    begin(device, page)
    assert found_by(axe, page) == []
    page.get_by_label("Client key or admin secret").fill("wg-wrong-0123456789")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert")).to_contain_text("neither the admin secret nor a client key")
    page.get_by_label("Client key or admin secret").fill(KEY)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading")).to_have_text("Approved")
    assert device.poll().status == 200


def test_through_the_identity_provider_of_another_site(running: LiveGateway, page: Page, axe: str):
    device = device_at(running)
    begin(device, page)
    page.get_by_role("link", name="Sign in with").click()
    expect(page.get_by_text("You are signed in as ada@example.com")).to_be_visible()
    assert found_by(axe, page) == []
    assert page.url == f"http://localhost:{running.port}/device"
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading")).to_have_text("Approved")
    assert device.poll().json()["email"] == "ada@example.com"


def test_the_inspector_leads_to_the_identity_provider_and_back(running: LiveGateway, page: Page):
    page.goto(f"http://localhost:{running.port}/inspector")
    page.get_by_role("link", name="Sign in with 127.0.0.1").click()
    expect(page.get_by_text("key ada@example.com")).to_be_visible()
