"""The composition root: the one package that makes concrete classes of several rooms (top-level packages).

`agent` builds the agent, `model` what talks to a model, `tools` what the model may call, `workspace` the folders,
programs, processes and sandbox they work with.
"""
