"""Saved sessions: the log file (journal), its encoding, blobs, and the store that lists and resumes sessions."""
