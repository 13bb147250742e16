"""Pure functions that format texts for the model and decode what it wrote."""
