"""`wireglot doctor`: diagnoses problems of a gateway's set-up and suggests fixes."""
