"""The steps, one file each."""
