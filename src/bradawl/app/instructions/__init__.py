"""Instruction files (AGENTS.md): finds and reads them, and tells the model in the system prompt and in notes"""
