"""Values and pure functions. No awaiting, files, clock, environment or logging."""
