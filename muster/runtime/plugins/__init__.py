"""The built-in plugins by framework, gang and target; `registry` lists them in their order.

Pure: a plugin reads and changes the `Info` that it gets, nothing else. They must not import `registry`. Start with
`simple`, then `torch`; `shared` has the parts that several use.
"""
