"""The parts of the Anthropic Messages codec."""
