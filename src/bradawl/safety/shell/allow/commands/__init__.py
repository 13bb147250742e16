"""The effects of single programs, determined from their options and operands."""
