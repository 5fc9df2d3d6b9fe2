"""What is looked at: a file a check. `listed.py` has them all."""
