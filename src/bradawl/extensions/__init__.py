"""What users add to bradawl from outside: their own tools."""
