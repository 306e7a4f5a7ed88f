"""Random programs do the same with monitors in them, whatever the monitors see."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reprise.lang.ruleset import load_rules
from reprise.mining.instrument.checks import Check, Site, read_checks
from reprise.mining.instrument.copying import Checkout
from reprise.mining.instrument.edits import Insertion, insert, remove
from reprise.mining.instrument.instrumenting import Plan, plan, write
from reprise.mining.instrument.places import errors_in, parse
from reprise.mining.instrument.python_source import LANGUAGE
from tests.mining.instrument.conftest import monitor

NAMES = ("a", "b", "c")
names = st.sampled_from(NAMES)
numbers = st.integers(-3, 9)


@st.composite
def expressions(draw: st.DrawFn) -> str:
    left, right = draw(names), draw(st.one_of(names, numbers.map(str)))
    form = draw(st.sampled_from(["{0} + {1}", "{0} * {1} % 7", "(lambda {0}: {0} - 1)({1})",
                                 "sum({0} for {0} in range({1} % 3))", "({0} +\n  {1})",
                                 "{0} if {1} else 2", "{0} or \\\n  {1}"]))  # fmt: skip
    return form.format(left, right)


simple = st.one_of(
    st.builds("{} = {}".format, names, expressions()),
    st.builds("{} += {}".format, names, numbers),
    st.builds("{}, {} = {}, 1".format, names, names, numbers),
    st.builds("print({}, end=' ')".format, expressions()),
    st.builds("print({0}); {0} = {1}".format, names, numbers),
    st.builds("assert {} != 1000, 'never'".format, names),
    st.builds("if {}: {} = {}".format, names, names, expressions()),
    st.builds("for {} in range(3): {} = {}".format, names, names, expressions()),
    st.just("pass"),
)


def indented(lines: list[str], blanks: str) -> list[str]:
    """Statements one level down; the continuation of one keeps its own blanks."""
    return [blanks + line for line in lines]


@st.composite
def compound(draw: st.DrawFn, inner: st.SearchStrategy[list[str]]) -> list[str]:
    blanks = draw(st.sampled_from(["    ", " ", "\t"]))
    name, other = draw(names), draw(names)
    body, rest = draw(inner), draw(inner)
    form = draw(st.sampled_from(["if", "for", "while", "try", "with", "def", "class", "match"]))
    deep, also = indented(body, blanks), indented(rest, blanks)
    match form:
        case "if":
            return [f"if {name} > 2:", *deep, f"elif {other}:  # or", *also]
        case "for":
            return [f"for {name} in range(2):", *deep, "else:", *also]
        case "while":
            return ["w = 2", "while w:", f"{blanks}w -= 1", *deep]
        case "try":
            caught = ["except Exception as e:", f"{blanks}print(type(e).__name__)", *also]
            return ["try:", *deep, f"{blanks}1 // {name}", *caught, "finally:", f"{blanks}print(1)"]
        case "with":
            return [f"with suppress(ZeroDivisionError) as {name}:", f"{blanks}{name} = 0", *deep]
        case "def":
            return ["@(lambda f: f)", f"def f({name}, *, {other}x=1):", f"{blanks}'doc'", *deep,
                    f"{blanks}return {name}", "print(f(2), f.__doc__)"]  # fmt: skip
        case "class":
            return ["class C:", f"{blanks}'doc'", f"{blanks}{name} = 4", f"{blanks}print({name})",
                    f"print(C.__doc__, sorted(v for v in vars(C) if v in {NAMES}))"]  # fmt: skip
    return [f"match {name}:", f"{blanks}case 0 | 1:", *indented(also, blanks),
            f"{blanks}case {other}:", *indented(deep, blanks)]  # fmt: skip


blocks = st.recursive(
    st.lists(simple, min_size=1, max_size=3).map(lambda lines: list(lines)),
    lambda inner: st.builds(lambda a, b: a + b, compound(inner), inner),
    max_leaves=6,
)


@st.composite
def programs(draw: st.DrawFn) -> bytes:
    head = draw(st.sampled_from(["", '"""Doc."""\n', "from __future__ import annotations\n"]))
    lines = [
        "from contextlib import suppress",
        "a, b, c = 1, 2, 3",
        *draw(blocks),
        "print(a, b, c)",
    ]
    text = head + "\n".join(lines) + draw(st.sampled_from(["\n", ""]))
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))).encode()


def outcome(source: bytes, path: Path) -> tuple[str, str]:
    """What a program prints and raises. Loops end; a variable may be unbound."""
    printed = io.StringIO()
    raised = ""
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(source, str(path), "exec", dont_inherit=True), {"__file__": str(path)})
        except Exception as error:
            raised = f"{type(error).__name__}: {error}"
    return printed.getvalue(), raised


@cache
def parity() -> dict[str, Check]:
    """A check for each variable, whose place is still to be said."""
    rules = "".join(monitor(f'value("{n}") % 2 == 0', "a.py:1", name=n) for n in NAMES)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "monitors.rules"
        path.write_text(rules)
        return {check.key: check for check in read_checks(load_rules([path]))}


def instrumented(folder: Path, source: bytes) -> Plan:
    """A monitor of every variable on every line, as far as they can be placed."""
    (folder / "checkout").mkdir()
    (folder / "checkout" / "a.py").write_bytes(source)
    checks = [
        replace(check, key=f"{name}_{line}", sites=(Site("a.py", line),))
        for line in range(1, source.count(b"\n") + 2)
        for name, check in parity().items()
    ]
    checkout = Checkout(folder / "checkout")
    made = plan(checkout, checks, {})
    write(checkout, folder / "copy", made)
    return made


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_a_program_prints_and_raises_the_same_with_monitors(source: bytes) -> None:
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        made = instrumented(folder, source)
        (file,) = made.touched
        assert remove(file.after, file.insertions) == source
        refused = [r.reason for r in made.refused if "refuses the file" in r.reason]
        # The grammar loses count of indentation where a bracket's second line is less indented.
        assert not refused or errors_in(parse(LANGUAGE, source))
        expected = outcome(source, folder / "checkout" / "a.py")
        assert outcome(file.after, folder / "copy" / "a.py") == expected


@given(st.binary(max_size=40), st.lists(st.tuples(st.integers(0, 40), st.binary(max_size=5))))
def test_removing_what_was_inserted_gives_the_file_back(
    source: bytes, wanted: list[tuple[int, bytes]]
) -> None:
    insertions = [Insertion(min(offset, len(source)), data) for offset, data in wanted]
    text, spans = insert(source, insertions)
    assert len(text) == len(source) + sum(len(data) for _, data in wanted)
    assert remove(text, spans) == source


def test_most_lines_of_a_program_take_monitors(tmp_path: Path) -> None:
    """So that the test above is about something."""
    body = ["a, b, c = 1, 2, 3", "if a:", "    b = a + c", "for c in range(2): a += c"]
    made = instrumented(tmp_path, ("\n".join(body) + "\n").encode())
    assert set(made.placed) >= {"a_1", "b_1", "c_1", "a_2", "b_3", "a_4", "c_4"}
