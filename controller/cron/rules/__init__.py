"""Decisions about a CronJob: pure functions of it, its Jobs and the time."""
