"""Cloud authentication: obtain, renew and use short-lived credentials."""
