"""What the program tells whoever called it: its exit statuses."""

from typing import Final

OK: Final = 0
FAILED: Final = 1
UNUSABLE: Final = 2
"""Bad input, or a command line or configuration that cannot be used."""
INTERRUPTED: Final = 130  # what a shell reports for SIGINT
PIPE_CLOSED: Final = 141  # and for SIGPIPE
MOST_FAILURES: Final = 100
"""A count of failures as a status ends here: those above have other meanings to a shell."""
