"""The picture of a terminal in the README, from a real run."""
