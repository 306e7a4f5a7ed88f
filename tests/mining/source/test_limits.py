"""A limit that is declared and never used is a bound that nothing checks."""

from __future__ import annotations

import pytest

from reprise.mining.source.limits import words
from tests.mining.source.conftest import Mine, rules
from tests.mining.source.test_templates import SETTINGS

LIMITS = """\
// The largest tensor, in bytes. TODO: check NPU_MAXIMUM_TENSOR_SIZE.
static constexpr int64_t NPU_MAXIMUM_TENSOR_SIZE = 4294967296;
static constexpr int64_t MAX_HIDDEN_SIZE = 8192;
#define NPU_MAX_RANK 4
#define MAX_FORMAT_SIZE 1024
"""


def bounds(mine: Mine, files: dict[str, str]) -> dict[str, str]:
    found = mine({f"src/{name}": text for name, text in files.items()}, "onnx-mlir")
    assert not rules(found).monitors
    return {bound.name: bound.property for bound in found.derived.beyond.sizes}


def test_what_its_name_says_becomes_a_constraint_on_models(mined: Mine) -> None:
    found = mined(
        {"src/limits.hpp": LIMITS, "src/a.cpp": "bool f(int h) { return h <= MAX_HIDDEN_SIZE; }"},
        "onnx-mlir",
    )
    constraint = rules(found).constraints["onnx_mlir_npu_maximum_tensor_size"]
    assert constraint.meta["from"] == ("src/limits.hpp:2",)
    assert constraint.meta["template"] == ("limits",)
    assert "require x.bytes <= 4294967296" in found.text
    assert "require x.rank <= 4" in found.text
    assert (
        "// limits: src/limits.hpp:5: `#define MAX_FORMAT_SIZE 1024`: MAX_FORMAT_SIZE" in found.text
    )
    assert "MAX_HIDDEN_SIZE" not in found.text


@pytest.mark.parametrize(
    "use",
    [
        "bool f(long n) { return n > NPU_MAXIMUM_TENSOR_SIZE; }",
        "long g() { return limits::NPU_MAXIMUM_TENSOR_SIZE; }",
        "#if NPU_MAXIMUM_TENSOR_SIZE > 4\n#endif",
        "#define FITS(n) ((n) <= NPU_MAXIMUM_TENSOR_SIZE)",
    ],
)
def test_any_use_in_code_counts(mined: Mine, use: str) -> None:
    assert "NPU_MAXIMUM_TENSOR_SIZE" not in bounds(mined, {"limits.hpp": LIMITS, "a.cpp": use})


@pytest.mark.slow
@pytest.mark.parametrize(
    "mention", ["// NPU_MAXIMUM_TENSOR_SIZE", 'const char *s = "NPU_MAXIMUM_TENSOR_SIZE";']
)
def test_a_comment_or_a_text_is_no_use(mined: Mine, mention: str) -> None:
    found = bounds(mined, {"limits.hpp": LIMITS, "a.cpp": mention})
    assert found["NPU_MAXIMUM_TENSOR_SIZE"] == "bytes"


def test_python_has_limits_too(mined: Mine) -> None:
    text = "MAX_NDIM = 6\nMAX_TENSOR_BYTES = 1 << 31\nclass C:\n    MAX_ELEMENTS = 9\n"
    found = mined({"a.py": text, "b.py": "from a import C\nprint(C.MAX_ELEMENTS)\n"})
    assert {b.name: b.most for b in found.derived.beyond.sizes} == {
        "MAX_NDIM": 6,
        "MAX_TENSOR_BYTES": 1 << 31,
    }


def test_the_least_is_no_upper_bound(mined: Mine) -> None:
    found = mined({"a.py": "MIN_RANK = 2\n"})
    assert found.derived.beyond.sizes == ()
    assert [f.text for f in found.derived.beyond.findings] == ["MIN_RANK"]


def test_words_of_names() -> None:
    assert words("kMaxThreadDims") == ["k", "max", "thread", "dims"]
    assert words("NNPA_MAXIMUM_TENSOR_SIZE") == ["nnpa", "maximum", "tensor", "size"]


@pytest.mark.parametrize(
    "files",
    [
        {"a.py": "ERROR_NO_FILE = 11\nERROR_MAX_TENSOR_BYTES = 12\n"},
        {"a.py": "class E(IntEnum):\n    DIM_MAX_RANK = 0x10\n    # and\n    DIM_ANY = 0x20\n"},
        {"a.cc": "#define CODE_MAX_RANK 7\n#define CODE_NEXT 8\n"},
        {"a.cc": "constexpr int CODE_MAX_RANK = 7;\nconstexpr int CODE_NEXT = 8;\n"},
    ],
)
def test_codes_that_are_counted_up_are_no_limits(mined: Mine, files: dict[str, str]) -> None:
    beyond = mined(files, settings=SETTINGS).derived.beyond
    assert (beyond.sizes, beyond.findings) == ((), ())


def test_limits_beside_other_limits_are_limits(mined: Mine) -> None:
    found = mined({"a.py": "MAX_RANK = 6\nMAX_DIMS = 7\nLANES = 8\n"}, settings=SETTINGS)
    assert [bound.name for bound in found.derived.beyond.sizes] == ["MAX_RANK"]
    assert [finding.text for finding in found.derived.beyond.findings] == ["MAX_DIMS"]
