"""Pictures of the pages: `docs/pictures`, drawn from what the library itself makes."""
