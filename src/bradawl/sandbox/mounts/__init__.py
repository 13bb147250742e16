"""What a sandbox mounts over parts of a writable folder, so that programs can't change or see them."""
