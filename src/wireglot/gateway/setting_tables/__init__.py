"""Tables of settings apart from the rest, each declared once as all settings are (see `settings.py`)."""
