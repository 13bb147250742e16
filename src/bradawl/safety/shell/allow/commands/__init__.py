"""The effects of single programs, by their options and operands."""
