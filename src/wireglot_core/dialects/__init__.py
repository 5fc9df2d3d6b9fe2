"""One codec package per dialect, between its wire format and the IR. They do not import one another."""
