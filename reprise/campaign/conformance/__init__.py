"""The conformance matrix: what our reference semantics and each target make of every operator in
every main element type, one node at a time, in the target's least optimised mode.

``cases`` draws programs, ``columns`` runs them on a target, ``matrix`` holds and stores the result,
``measure`` is the loop over all of it, ``differences`` the list of explanations, ``page`` the page
of the manual. ``onnx_reference`` is a target file: the ONNX project's own evaluator.
"""
