"""What the program tells whoever called it: its exit statuses."""

from typing import Final

OK: Final = 0
FAILED: Final = 1
UNUSABLE: Final = 2
"""Bad input, or a command line or configuration that cannot be used."""
NOT_EXECUTABLE: Final = 126  # what a shell reports for a program that cannot be run
NOT_FOUND: Final = 127  # and for one that is not there
INTERRUPTED: Final = 130  # for SIGINT
PIPE_CLOSED: Final = 141  # for SIGPIPE
MOST_FAILURES: Final = 100
"""A count of failures as a status ends here: those above have other meanings to a shell."""
