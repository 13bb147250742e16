"""The parts of the OpenAI Responses codec."""
