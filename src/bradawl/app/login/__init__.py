"""`bradawl login` and `logout`: reads a key, tests it, chooses a model, and stores both for later runs"""
