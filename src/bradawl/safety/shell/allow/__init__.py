"""The strict reader: the effects of a line that is fully understood. Anything else has unknown effects."""
