"""A world in memory in which Muster's real code runs one step at a time, and an explorer of all orders of its steps."""
