"""Finds commands that no permission mode may run, also in lines that the strict parser of `allow` rejects."""
