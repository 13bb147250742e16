"""Folds over the session log: pure functions from log entries to the transcript and the session's state."""
