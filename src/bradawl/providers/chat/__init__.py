"""OpenAI Chat Completions, the format most servers speak; `codec` is the codec, the other modules are its parts."""
