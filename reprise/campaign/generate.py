"""``reprise gen``: programs as files, without running them.

A folder holds one file a program and form (``s7-000012.uir``, ``.onnx``, ``.torch.py``,
``.relax.py``), its inputs (``.npz``), and ``generation.json``, which says what was asked
for. A folder that is there already is completed: only missing programs are written, and only if it
was made by the same request. Files appear whole or not at all.
"""

from __future__ import annotations

import io
import json
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from reprise import __version__
from reprise.cache import write_whole
from reprise.campaign.source import SourceRequest, open_source
from reprise.lower.lowering import lowering
from reprise.patterns.check import UsageError
from reprise.synth.generator import Generator
from reprise.uir.program import Program
from reprise.uir.text import print_uir

FORMS = {"uir": ".uir", "onnx": ".onnx", "torch": ".torch.py", "relax": ".relax.py"}
"""What a program can be written as, and the file name's end."""

MANIFEST = "generation.json"
_CHUNK = 16


@dataclass(frozen=True)
class GenerationRequest:
    """Programs 0 to ``tests`` of a source, in each of ``forms``, into ``folder``."""

    source: SourceRequest
    tests: int
    forms: tuple[str, ...]
    folder: Path

    def manifest(self) -> dict[str, object]:
        """What must be the same for a folder to be completed; the number may grow."""
        source = asdict(self.source)
        source["options"] = {
            k: sorted(v) if isinstance(v, frozenset) else v for k, v in source["options"].items()
        }
        source["rules"] = [str(path) for path in self.source.rules]
        return {"reprise": __version__, "forms": list(self.forms), "source": source}


def generate(request: GenerationRequest, jobs: int = 1) -> Iterator[int]:
    """Write the missing programs; yields each one's number when its files are there.

    Raises UsageError for a folder that another request made, and OSError for one that cannot be
    written.
    """
    generator = open_source(request.source)  # what is wrong with a request leaves no folder behind
    _prepare(request)
    missing = [i for i in range(request.tests) if not _is_written(request, i)]
    if jobs <= 1 or len(missing) <= _CHUNK:
        for index in missing:
            _write(request, generator, index)
            yield index
        return
    chunks = [missing[i : i + _CHUNK] for i in range(0, len(missing), _CHUNK)]
    pool = ProcessPoolExecutor(
        min(jobs, len(chunks)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(request,),
    )
    try:
        for done in pool.map(_write_chunk, chunks):
            yield from done
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def program_files(
    program: Program, forms: Sequence[str], opset: int | None = None
) -> dict[str, bytes]:
    """A program's files by the end of their names: each form, ONNX at ``opset``, and its inputs."""
    files: dict[str, bytes] = {}
    for form in forms:
        if form == "uir":
            files[FORMS[form]] = print_uir(program.graph).encode()
        else:
            files[FORMS[form]] = lowering(form, opset).lower(program.graph)
    buffer = io.BytesIO()
    # Text is an array of objects, which could only be pickled.
    stored = {n: a.astype(str) if a.dtype == object else a for n, a in program.inputs.items()}
    np.savez(buffer, **stored)  # type: ignore[arg-type]
    files[".npz"] = buffer.getvalue()
    return files


def _prepare(request: GenerationRequest) -> None:
    request.folder.mkdir(parents=True, exist_ok=True)
    path = request.folder / MANIFEST
    wanted = json.dumps(request.manifest(), indent=2, sort_keys=True, default=str) + "\n"
    try:
        found = path.read_text()
    except FileNotFoundError:
        if any(request.folder.iterdir()):
            raise UsageError(f"{request.folder}: this folder holds other files") from None
        write_whole(path, wanted.encode())
        return
    if found != wanted:
        raise UsageError(
            f"{request.folder}: programs of another request are there (see {MANIFEST}); "
            "choose another --out"
        )


def _name(request: GenerationRequest, index: int) -> str:
    return f"s{request.source.seed}-{index:06d}"


def _is_written(request: GenerationRequest, index: int) -> bool:
    name = _name(request, index)
    ends = [*(FORMS[form] for form in request.forms), ".npz"]
    return all((request.folder / f"{name}{end}").exists() for end in ends)


def _write(request: GenerationRequest, generator: Generator, index: int) -> None:
    program = generator.program(index).program
    for end, data in program_files(program, request.forms, request.source.opset).items():
        write_whole(request.folder / f"{_name(request, index)}{end}", data)


_worker: tuple[GenerationRequest, Generator] | None = None


def _start_worker(request: GenerationRequest) -> None:
    import signal

    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    _worker = request, open_source(request.source)


def _write_chunk(indices: list[int]) -> list[int]:
    assert _worker is not None
    for index in indices:
        _write(*_worker, index)
    return indices
