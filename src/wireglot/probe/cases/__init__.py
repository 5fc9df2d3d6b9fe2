"""The probe's test cases, one module per subject."""
