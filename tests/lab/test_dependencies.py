"""What a proof depends on is read from its code, so that a change cannot be forgotten."""

from proofs.lab.dependencies import packages


def test_a_proof_depends_on_all_that_the_gateway_it_starts_can_load() -> None:
    found = packages("proofs.lab.kill")
    wanted = {"cache", "cli", "dialects", "gateway", "http", "logins", "stores", "traces", "translate", "web"}
    assert wanted <= set(found)
    assert not {"history", "kimi", "probe"} & set(found)


def test_a_proof_of_the_library_does_not_depend_on_the_gateway() -> None:
    assert not {"gateway", "http", "stores", "cli"} & set(packages("proofs.lab.splits"))


def test_a_package_that_is_run_leads_through_its_main_module() -> None:
    assert {"gateway", "stores"} <= set(packages("proofs.lab.doors"))
