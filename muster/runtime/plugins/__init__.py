"""The built-in plugins, one module each. Pure: they read and change the `Info` that they get, nothing else."""
