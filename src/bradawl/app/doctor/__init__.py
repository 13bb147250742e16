"""`bradawl doctor`: checks everything a run needs, one function for each check, and lays the results out"""
