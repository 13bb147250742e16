"""Compaction: makes a conversation that fills the model's window shorter, and keeps what it depends on"""
