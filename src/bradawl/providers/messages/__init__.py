"""Anthropic Messages; `codec` is the codec, the other modules are its parts."""
