"""What a release is made of: a lock with hashes, a bill of materials, a wheel that anyone can build again."""
