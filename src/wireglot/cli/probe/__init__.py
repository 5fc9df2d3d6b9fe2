"""`wireglot probe`: an endpoint put to the test."""
