"""Log, metrics and telemetry, with secrets redacted."""
