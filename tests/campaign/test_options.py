"""The generator's options as the command line and the store write them."""

from __future__ import annotations

import click
import pytest

from reprise.campaign.options import read_options
from reprise.cli.fuzz import Duration, fuzz
from reprise.cli.generation import generation_options
from reprise.synth.options import Options, OptionsError


def test_nothing_given_is_the_default() -> None:
    assert read_options({}) == Options()


def test_words_and_numbers_are_read() -> None:
    read = read_options(
        {
            "nodes": 4,
            "ops": ["relu, gemm", "abs"],
            "no_ops": ["pooling"],
            "dtypes": ["float32=3,int8"],
            "no_inputs": 1.0,
            "key": "paper",
        }
    )
    assert (read.nodes, read.key, read.no_inputs) == (4, "paper", 1.0)
    assert read.include == {"relu", "gemm", "abs"}
    assert read.exclude == {"pooling"}
    assert read.dtypes == {"float32": 3, "int8": 1}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nodes": 0}, "nodes must be at least 1"),
        ({"dtypes": ["float31"]}, "float31"),
        ({"dtypes": ["float32=often"]}, "whole number"),
        ({"colour": 1}, "no option colour"),
    ],
)
def test_nonsense_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(OptionsError, match=message):
        read_options(given)


def test_every_option_of_the_command_is_one_of_the_generator() -> None:
    @click.command()
    @generation_options
    def command(**given: object) -> None: ...

    samples = {"ops": ["relu"], "no_ops": ["relu"], "dtypes": ["float32"], "key": "exact"}
    samples |= {"signatures": ["rules/mining/onnx.rules"], "also": ["random"]}
    names = [p.name for p in command.params if p.name]
    for name in names:
        assert read_options({name: samples.get(name, 1)}) is not None
    assert set(names) <= {p.name for p in fuzz.params}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("30m", 1800), ("1h30m", 5400), ("1d", 86400), ("0.5", 0.5)],
)
def test_durations(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-3", "0", "5x", "m"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Duration().convert(text, None, None)
