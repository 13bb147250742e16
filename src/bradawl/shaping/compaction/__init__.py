"""The texts of a compaction: what is left of long results, what is pinned, and what replaces the old conversation"""
