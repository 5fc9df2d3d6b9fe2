"""The intermediate representation: conversations, outcomes, stream events, losses. No wire formats."""
