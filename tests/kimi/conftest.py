import pytest


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    """No test may find a key or a base URL of anyone who runs it."""
    for name in ("COLIBRI_KIMI_API_KEY", "MOONSHOT_API_KEY", "KIMI_API_KEY", "COLIBRI_KIMI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
