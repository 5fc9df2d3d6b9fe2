"""Everything told about a request leaves here: log, metrics, telemetry, without secrets."""
