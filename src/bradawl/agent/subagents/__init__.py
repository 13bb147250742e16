"""Sub-agents: conversations of their own inside a session."""
