"""What `muster ps`, `logs`, `nodes` and `train list` say of gangs, made of the objects that a user may read.

Start reading at `rows`: a row per gang, whatever kind its workload is of. `owners` says whose a gang is, as people call
it, and `words` says things briefly. `read` reads the objects, with whatever rights there are.

Promises that a decision is made of objects alone (all but `read` are pure), and that nothing here needs rights beyond
one namespace. It must not import musterctl.commands.
"""
