"""UIR to what compilers read: ONNX models, torch modules, TVM Relax functions.

One module a language. Each turns a whole graph into bytes (a serialised model, or Python source
that builds one), so that a target's worker can run in an interpreter that has no Reprise.
"""
