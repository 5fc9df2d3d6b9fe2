"""The fidelity matrix: what each dialect can carry for each other one, measured."""
