"""Which sources are under mutation testing, and by which tests."""

from proofs.mutants.packages import PACKAGES, ROOT, SAMPLES, SOURCES


def test_every_source_but_samples_is_in_a_package():
    covered = {file for package in PACKAGES for file in package.files()}
    sources = {path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.py")}
    assert [file for file in sorted(sources - covered) if not file.startswith(SAMPLES)] == []


def test_every_package_names_sources_and_tests_that_exist():
    missing = [
        f"{package.name}: {pattern}"
        for package in PACKAGES
        for pattern in package.sources
        if not list(SOURCES.glob(pattern))
    ]
    missing += [
        f"{package.name}: {tests}"
        for package in PACKAGES
        for tests in package.tests
        if not (ROOT / tests).exists()
    ]
    assert missing == []
