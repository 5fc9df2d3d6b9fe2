"""Stream translation and pass-through, without waiting."""
