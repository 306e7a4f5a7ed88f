"""Element types as numpy knows them.

The rule language's names (``reprise.lang.dtypes``) to numpy dtypes and back; what numpy itself
lacks (``bfloat16``, the 8- and 4-bit types) comes from ``ml_dtypes``.
"""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np

_EXTENDED = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8e8m0": ml_dtypes.float8_e8m0fnu,
    "float4e2m1": ml_dtypes.float4_e2m1fn,
    "int2": ml_dtypes.int2,
    "int4": ml_dtypes.int4,
    "uint2": ml_dtypes.uint2,
    "uint4": ml_dtypes.uint4,
    "string": object,
}


@cache
def numpy_dtype(name: str) -> np.dtype[np.generic]:
    """The numpy dtype of an element type. Raises TypeError for a name that is none."""
    dtype: np.dtype[np.generic] = np.dtype(_EXTENDED.get(name, name))
    return dtype
