"""What the program tells whoever called it: its exit statuses. docs/cli.md has the same table."""

from typing import Final

OK: Final = 0
FAILED: Final = 1
"""It was tried and could not be done: nobody answers, a key is refused, a port is taken, a check failed.
`demo` and `smoke` count: their status is the number of failures."""
UNUSABLE: Final = 2
"""Nothing was tried: the command line, the configuration, a file or the output cannot be used."""
NOT_EXECUTABLE: Final = 126  # what a shell reports for a program that cannot be run
NOT_FOUND: Final = 127  # and for one that is not there
HUNG_UP: Final = 129  # and for SIGHUP
INTERRUPTED: Final = 130  # for SIGINT
PIPE_CLOSED: Final = 141  # for SIGPIPE
TERMINATED: Final = 143  # for SIGTERM
MOST_FAILURES: Final = 100
"""A count of failures as a status ends here: those above have other meanings to a shell."""
