"""Settings of a run: the table of settings, and how flags, environment variables and files become one `Settings`."""
