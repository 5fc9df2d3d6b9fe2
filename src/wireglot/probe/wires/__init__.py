"""The probe's own plain-JSON reader and writer of each dialect, so that no codec of ours hides an error."""
