"""OpenAI Responses; `codec` is the codec, the other modules are its parts."""
