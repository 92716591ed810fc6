"""What must hold for a Volcano Job: `job` puts the parts together; each part gathers all of its errors. No I/O."""
