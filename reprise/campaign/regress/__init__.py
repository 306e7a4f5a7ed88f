"""Do known bugs still fire? Rules against installed versions of their targets.

A rule's witnesses (the programs of its tests that match, and fresh ones) run on a target; what
they show makes a cell of the matrix rule x version, which is held against the rule's ``affects``.
"""
