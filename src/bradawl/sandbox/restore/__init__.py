"""Detects changes that a sandbox could not prevent and undoes them: protected files, git history."""
