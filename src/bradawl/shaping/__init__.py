"""Pure functions between core and agent: what is shown to a model, and what it says, brought into shape."""
