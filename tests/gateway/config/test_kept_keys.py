"""Keys that a person gave once and wanted kept: in a file for its owner alone, or in the system's keyring."""

import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.gateway.config.config_files import QUIET, written
from wireglot.gateway.config import Watcher, load
from wireglot.gateway.config.kept_keys import has_keyring, keep, keep_in_keyring, kept_file, read_kept
from wireglot.gateway.settings import Settings
from wireglot_core.extras import install_hint


def home(tmp_path: Path) -> dict[str, str]:
    return {**QUIET, "HOME": str(tmp_path)}


def place(tmp_path: Path) -> Path:
    found = kept_file(home(tmp_path))
    assert found is not None
    return found


def test_a_kept_key_switches_its_provider_on(tmp_path: Path) -> None:
    keep(place(tmp_path), "MOONSHOT_API_KEY", "sk-kept")
    settings = load(None, environ=home(tmp_path), create_secret=False)
    (credential,) = settings.providers["kimi"].credentials
    assert credential.secret.value == "sk-kept"
    assert credential.secret.source == f"file:{place(tmp_path)}"


def test_what_is_kept_is_for_its_owner_alone_and_others_stay(tmp_path: Path) -> None:
    keep(place(tmp_path), "MOONSHOT_API_KEY", "sk-one")
    keep(place(tmp_path), "OPENAI_API_KEY", "sk-two")
    keep(place(tmp_path), "MOONSHOT_API_KEY", "sk-three")
    assert stat.S_IMODE(place(tmp_path).stat().st_mode) == 0o600
    assert stat.S_IMODE(place(tmp_path).parent.stat().st_mode) == 0o700
    lines = place(tmp_path).read_text().splitlines()[1:]
    assert lines == ["MOONSHOT_API_KEY=sk-three", "OPENAI_API_KEY=sk-two"]
    assert [entry.name for entry in place(tmp_path).parent.iterdir()] == ["credentials"]


def test_a_variable_that_is_set_wins(tmp_path: Path) -> None:
    keep(place(tmp_path), "MOONSHOT_API_KEY", "sk-kept")
    environ = {**home(tmp_path), "KIMI_API_KEY": "sk-set"}
    settings = load(None, environ=environ, create_secret=False)
    assert settings.providers["kimi"].credentials[0].secret.value == "sk-set"


def test_a_configuration_finds_a_kept_key_by_the_name_of_its_variable(tmp_path: Path) -> None:
    keep(place(tmp_path), "MINE", "sk-kept")
    path = written(tmp_path, '[providers.kimi]\napi_key = "env:MINE"\n')
    settings = load(path, environ=home(tmp_path), create_secret=False)
    assert settings.providers["kimi"].credentials[0].secret.value == "sk-kept"


def test_a_key_is_kept_for_any_variable_that_a_configuration_may_name(tmp_path: Path) -> None:
    keep(place(tmp_path), "my_key", "sk-kept")
    path = written(tmp_path, '[providers.kimi]\napi_key = "env:my_key"\n')
    settings = load(path, environ=home(tmp_path), create_secret=False)
    assert settings.providers["kimi"].credentials[0].secret.value == "sk-kept"
    assert not any("NAME=VALUE" in note for note in settings.notes)


def test_lines_that_are_no_keys_are_passed_over(tmp_path: Path) -> None:
    place(tmp_path).parent.mkdir(parents=True)
    place(tmp_path).write_bytes(b"\xff\x00\n# MOONSHOT_API_KEY=no\nexport X\nMOONSHOT_API_KEY = spaced\n")
    assert "kimi" not in load(None, environ=home(tmp_path), create_secret=False).providers


def test_one_that_others_can_read_is_reported(tmp_path: Path) -> None:
    keep(place(tmp_path), "MOONSHOT_API_KEY", "sk-kept")
    place(tmp_path).chmod(0o644)
    notes = load(None, environ=home(tmp_path), create_secret=False).notes
    assert any("chmod 600" in note for note in notes)


def test_a_gateway_that_runs_takes_up_a_key_that_is_kept_meanwhile(tmp_path: Path) -> None:
    changes: list[Settings] = []
    watcher = Watcher(None, changes.append, lambda _: None, environ=home(tmp_path))
    keep(place(tmp_path), "MOONSHOT_API_KEY", "sk-kept")
    watcher.step()
    watcher.step()
    watcher.step()
    assert [list(settings.providers) for settings in changes] == [list(changes[0].providers)]
    assert "kimi" in changes[0].providers


class _Refused(Exception):
    pass


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], str]:
    """The package `keyring`, with a keyring that is a dict."""
    held: dict[tuple[str, str], str] = {}
    package, errors = ModuleType("keyring"), ModuleType("keyring.errors")
    errors.KeyringError = _Refused  # type: ignore[attr-defined]  # a module made here
    package.errors = errors  # type: ignore[attr-defined]  # a module made here
    package.get_keyring = lambda: SimpleNamespace(priority=5)  # type: ignore[attr-defined]  # a module made here
    package.set_password = lambda service, name, value: held.update({(service, name): value})  # type: ignore[attr-defined]  # a module made here
    package.get_password = lambda service, name: held.get((service, name))  # type: ignore[attr-defined]  # a module made here
    monkeypatch.setitem(sys.modules, "keyring", package)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    return held


def test_a_key_in_the_keyring_is_in_no_file(tmp_path: Path, keyring: dict[tuple[str, str], str]) -> None:
    assert has_keyring()
    keep_in_keyring(place(tmp_path), "MOONSHOT_API_KEY", "sk-kept")
    assert keyring == {("wireglot", "MOONSHOT_API_KEY"): "sk-kept"}
    assert "sk-kept" not in place(tmp_path).read_text()
    settings = load(None, environ=home(tmp_path), create_secret=False)
    assert settings.providers["kimi"].credentials[0].secret.value == "sk-kept"


def test_a_key_that_has_left_the_keyring_is_reported(
    tmp_path: Path, keyring: dict[tuple[str, str], str]
) -> None:
    keep_in_keyring(place(tmp_path), "MOONSHOT_API_KEY", "sk-kept")
    keyring.clear()
    settings = load(None, environ=home(tmp_path), create_secret=False)
    assert "kimi" not in settings.providers
    assert "MOONSHOT_API_KEY was stored in the keyring and is missing now" in settings.notes


def test_a_keyring_without_its_package_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    keep(place(tmp_path), "MOONSHOT_API_KEY", "keyring:")
    notes = load(None, environ=home(tmp_path), create_secret=False).notes
    assert any(install_hint("keyring") in note for note in notes)
    assert not has_keyring()


def test_what_a_person_wrote_into_the_file_stays_when_another_key_is_kept(tmp_path: Path) -> None:
    """Also what is no key to us: it may be one to its owner, and there is no other copy."""
    place(tmp_path).parent.mkdir(parents=True)
    place(tmp_path).write_bytes(
        b"# of my team\r\nexport MINE=sk-by-hand\nlower=sk-low\n\nMOONSHOT_API_KEY=sk-old\nLATIN=\xe4\xff\n"
    )
    keep(place(tmp_path), "MOONSHOT_API_KEY", "sk-new")
    keep(place(tmp_path), "OPENAI_API_KEY", "sk-two")
    assert place(tmp_path).read_bytes() == (
        b"# of my team\nexport MINE=sk-by-hand\nlower=sk-low\n\nMOONSHOT_API_KEY=sk-new\nLATIN=\xe4\xff\n"
        b"OPENAI_API_KEY=sk-two\n"
    )


def test_a_line_that_was_meant_for_a_key_and_is_none_is_reported_by_its_number(tmp_path: Path) -> None:
    place(tmp_path).parent.mkdir(parents=True)
    place(tmp_path).write_text("# keys\n\nMOONSHOT_API_KEY = sk-spaced\nOPENAI_API_KEY='sk-quoted'\n")
    place(tmp_path).chmod(0o600)
    settings = load(None, environ=home(tmp_path), create_secret=False)
    assert f"{place(tmp_path)}: line 3 is not NAME=VALUE, and is ignored" in settings.notes
    assert not any("sk-" in note for note in settings.notes)
    assert settings.providers["openai"].credentials[0].secret.value == "sk-quoted"


def test_keys_that_cannot_be_read_are_not_written_over(tmp_path: Path) -> None:
    """A file that `sudo` left, a disk that fails: what is in it is not lost for one key more."""
    place(tmp_path).parent.mkdir(parents=True)
    place(tmp_path).mkdir()
    (place(tmp_path) / "something").write_text("x")
    with pytest.raises(OSError, match="directory"):
        keep(place(tmp_path), "MOONSHOT_API_KEY", "sk-kept")
    place(tmp_path).rename(tmp_path / "away")
    place(tmp_path).write_text("A=b\n" * 20_000)
    with pytest.raises(OSError, match="too large"):
        keep(place(tmp_path), "MOONSHOT_API_KEY", "sk-kept")
    assert place(tmp_path).read_text() == "A=b\n" * 20_000


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_link_that_leads_nowhere_is_no_place_for_keys(tmp_path: Path) -> None:
    place(tmp_path).parent.mkdir(parents=True)
    place(tmp_path).symlink_to(place(tmp_path))
    with pytest.raises(OSError, match="symbolic links"):
        keep(place(tmp_path), "MOONSHOT_API_KEY", "sk-kept")
    notes: list[str] = []
    assert read_kept(place(tmp_path), notes) == {}
    assert "symbolic links" in notes[0]


def test_no_key_is_kept_with_which_none_could_be_read_any_more(tmp_path: Path) -> None:
    names = [f"KEY_{number}" for number in range(5)]
    long = "x" * 16_000
    for name in names[:4]:
        keep(place(tmp_path), name, long)
    with pytest.raises(OSError, match="the file is full"):
        keep(place(tmp_path), names[4], long)
    assert list(read_kept(place(tmp_path), [])) == names[:4]


def test_keys_kept_at_once_are_all_kept(tmp_path: Path) -> None:
    names = [f"KEY_{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: keep(place(tmp_path), name, "sk-kept"), names))
    kept = read_kept(place(tmp_path), [])
    assert set(kept) == set(names)
