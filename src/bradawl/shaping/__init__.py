"""Pure functions that shape what a model is shown, and decode what it wrote."""
