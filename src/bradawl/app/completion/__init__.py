"""`bradawl completion`: scripts for bash, zsh and fish, and the answers to what they ask."""
