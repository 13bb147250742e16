"""What a sandbox could not keep from being changed, and puts back afterwards."""
