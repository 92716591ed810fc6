"""The migration steps of the schema, one file each."""
