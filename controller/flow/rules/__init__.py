"""Decisions about a JobFlow: pure functions of it, its Jobs, its JobTemplates, and the time."""
