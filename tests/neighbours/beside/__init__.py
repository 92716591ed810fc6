"""Other projects' controllers, real and unmodified, beside Muster on one embedded plane.

What lives here builds their programs from Go modules (`modules/<name>`, written by `.ci/neighbour-recipe`), reads
their manifests from the module as it was published, and runs them as processes of a plane, so that they end with it.
Headlamp, a page for browsers, comes from npm and is built with what `headlamp` in the folder above adds.
Nothing of theirs is copied into this repository. It may import the plane and what that may; only the tests in this
folder and the measurements of peers (`tests/bench/peers`) may import it.
"""
