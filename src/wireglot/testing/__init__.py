"""What tests of Wireglot and of its users share."""
