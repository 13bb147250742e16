"""The journal: sessions, blobs, resume."""
