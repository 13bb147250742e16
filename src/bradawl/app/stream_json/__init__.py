"""A run as lines of JSON: what `--output-format stream-json` prints, and the messages that stdin may hold"""
