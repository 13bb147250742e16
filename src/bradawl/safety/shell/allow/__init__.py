"""The allow side: determines the effects of lines that it understands completely. All others have unknown effects."""
