"""What a scripted model got back from its first call."""

from typing import Any

from bradawl.core.messages import ToolResults, text_of


def first_result(agent: Any) -> str:
    """Text of the first result in the second request of an agent with a `ScriptedModel`."""
    (message,) = (each for each in agent.model.requests[1] if isinstance(each, ToolResults))
    return text_of(message.results[0].parts)
