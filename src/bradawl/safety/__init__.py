"""What a call may do, told before it does it. Fails closed: what isn't fully understood is unknown."""
