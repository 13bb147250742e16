"""Plans the mounts over a writable folder: protected files read-only, secrets masked, missing files blocked."""
