"""``reprise mine docs``, whole: from documents to files of rules.

Comes in: paths, or nothing: then the documents are made from the installed ``onnx`` package. Goes
out: :class:`Mined`, the documentation that was read and the rules that follow from it, as files by
name: ``constraints.rules``, ``signatures.rules`` for operators that UIR lacks and
``signatures_in_uir.rules`` for those that it has under a name of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reprise.mining.docs.constraints import MinedConstraint, constraints
from reprise.mining.docs.model import Documentation, Entry, Form
from reprise.mining.docs.signatures import LeftOut, Signed, signature
from reprise.mining.docs.vocabulary import Vocabulary, uir_names

CONSTRAINTS = "constraints.rules"
SIGNATURES = "signatures.rules"
SIGNATURES_IN_UIR = "signatures_in_uir.rules"
_TITLE = "Mined from ONNX's documentation by `reprise mine docs`"


@dataclass(frozen=True, slots=True)
class Mined:
    """What was mined. ``chosen``: the version of each operator that the rules are about."""

    documentation: Documentation
    chosen: tuple[Entry, ...]
    constraints: tuple[MinedConstraint, ...]
    signatures: tuple[Signed, ...]
    left_out: tuple[LeftOut, ...]

    def files(self) -> Mapping[str, str]:
        """The rules, formatted, by file name."""
        known = [s for s in self.signatures if in_uir(s.entry)]
        new = [s for s in self.signatures if not in_uir(s.entry)]
        return {
            CONSTRAINTS: _file(_TITLE, (c.text for c in self.constraints)),
            SIGNATURES: _file(f"{_TITLE}: operators that UIR has not", (s.text for s in new)),
            SIGNATURES_IN_UIR: _file(
                f"{_TITLE}: operators that UIR has, under its own names", (s.text for s in known)
            ),
        }


def mine(documentation: Documentation, opset: int | None = None) -> Mined:
    """The rules that follow from the newest version of each operator; ``opset``: the newest that
    it has in that version of ONNX's own domain."""
    chosen = choose(documentation.entries, opset)
    vocabulary = Vocabulary(chosen)
    made: list[MinedConstraint] = []
    names: set[str] = set()
    signed: list[Signed] = []
    left_out: list[LeftOut] = []
    for entry in chosen:
        again = documentation.again.get(entry.key, ())
        demanded = constraints(entry, vocabulary, documentation.cite, again)
        made += (c for c in demanded if c.name not in names)
        names.update(c.name for c in made)
        match signature(entry, documentation.cite, _notes(entry)):
            case Signed() as found:
                signed.append(found)
            case LeftOut() as missing:
                left_out.append(missing)
    return Mined(documentation, chosen, tuple(made), tuple(signed), tuple(left_out))


def choose(entries: Sequence[Entry], opset: int | None = None) -> tuple[Entry, ...]:
    """The newest entry of each operator that ``opset`` of ONNX's own domain has."""
    newest: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        if opset is not None and not entry.domain and entry.since > opset:
            continue
        known = newest.get((entry.domain, entry.name))
        if known is None or known.since < entry.since:
            newest[entry.domain, entry.name] = entry
    return tuple(newest.values())


def in_uir(entry: Entry) -> bool:
    """Whether UIR has an operator that means the same."""
    return not entry.domain and bool(uir_names(entry.name))


def _notes(entry: Entry) -> list[str]:
    if not in_uir(entry):
        return []
    return [f"In UIR: {', '.join(f'`{name}`' for name in uir_names(entry.name))}"]


def _file(title: str, declarations: Iterable[str]) -> str:
    from reprise.lang.format import format_text

    return format_text("\n\n".join([f"// {title}.", *declarations]))


def read(
    paths: Sequence[Path], form: Form | None = None, keep: Path | None = None
) -> Documentation:
    """The documents in ``paths``, or those of the installed ``onnx`` package, which are also
    written to the folder ``keep``. Raises OSError."""
    from reprise.mining.docs.generate import documents
    from reprise.mining.docs.reading import read_documents, read_texts

    if paths:
        return read_documents(paths, form)
    made = documents(form or Form.MARKDOWN)
    if keep is not None:
        made = {str(keep / Path(name).name): text for name, text in made.items()}
        keep.mkdir(parents=True, exist_ok=True)
        for name, text in made.items():
            Path(name).write_text(text, encoding="utf-8")
    # Documents that are nowhere are cited by the package's name and version.
    folder = str(keep) if keep is not None else str(Path(next(iter(made))).parent)
    return replace(read_texts(made), folders=(folder,))


def save(mined: Mined, out: Path, write: Callable[[Path, str], None]) -> None:
    """Write the rules to a folder or, where ``out`` ends in ``.rules``, to one file. ``write``
    writes one file."""
    files = mined.files()
    if out.suffix == ".rules":
        texts = [text for text in files.values() if text.count("\n") > 1] or [_file(_TITLE, ())]
        write(out, "\n".join(texts))
        return
    for name, text in files.items():
        write(out / name, text)
