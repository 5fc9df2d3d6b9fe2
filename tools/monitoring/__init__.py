"""The Grafana dashboard of `deploy/grafana`, and what its expressions and those of the alerts may name."""
