"""Long trials of what must never happen: something acknowledged that is lost, something of another caller."""
