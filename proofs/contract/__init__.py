"""`make contract`: the reference gateway of the `claude` program next to ours, the same requests to both."""
