"""What a log comes to: pure functions from entries to the conversation and the state of a session."""
