"""Operators that are left out are generated on request: random ones, and those whose extents
depend on values, whose results nothing reads."""

from __future__ import annotations

import pytest

from reprise.synth.generator import Generator
from reprise.synth.options import Options, OptionsError
from reprise.uir.graph import Node
from reprise.uir.text import print_uir


def nodes(shipped, signatures, count: int = 60, **options) -> list[Node]:
    chosen = frozenset({"random_generation", "data_dependent_shape", "activation"})
    generator = Generator(shipped, signatures, Options(nodes=6, include=chosen, **options), 1)
    graphs = [generator.program(index).program.graph for index in range(count)]
    return [node for graph in graphs for node in graph.nodes]


def flags(signatures, made: list[Node]) -> set[str]:
    return {flag for node in made for flag in signatures[node.op].flags} - {"commutative"}


def test_they_are_generated_if_asked_for_and_only_then(shipped, signatures) -> None:
    assert flags(signatures, nodes(shipped, signatures)) == set()
    for flag in ("random", "data_dependent"):
        made = nodes(shipped, signatures, also=frozenset({flag}))
        assert flags(signatures, made) == {flag}


def test_nothing_reads_what_has_unknown_extents(shipped, signatures) -> None:
    made = nodes(shipped, signatures, also=frozenset({"data_dependent"}))
    unknown = [t for n in made for t in n.outputs if t is not None and t.type.elements is None]
    assert len(unknown) > 10
    read = {id(tensor) for node in made for tensor in node.inputs}
    assert not read & {id(tensor) for tensor in unknown}


def test_programs_without_them_are_the_same_whether_they_could_be_there(
    shipped, signatures
) -> None:
    def texts(also: frozenset[str]) -> list[str]:
        options = Options(nodes=5, include=frozenset({"activation"}), also=also)
        generator = Generator(shipped, signatures, options, 2)
        return [print_uir(generator.program(i).program.graph) for i in range(5)]

    assert texts(frozenset()) == texts(frozenset({"random", "data_dependent"}))


def test_what_is_no_such_flag_is_refused() -> None:
    with pytest.raises(OptionsError, match="also: not data_dependent or random: untyped"):
        Options(also=frozenset({"untyped"}))
