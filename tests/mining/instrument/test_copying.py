"""The copy: what is in it, what it must not be, and that making it again changes nothing."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from reprise.lang.ruleset import load_rules
from reprise.mining.instrument.checks import read_checks
from reprise.mining.instrument.copying import MANIFEST, Checkout, read_manifest
from reprise.mining.instrument.errors import InstrumentError
from reprise.mining.instrument.instrumenting import plan, write
from tests.mining.instrument.conftest import Workshop, monitor

pytestmark = pytest.mark.usefixtures("no_compiler")

RULES = monitor('value("x") == 1', "p/a.py:1") + monitor('value("y") == 2', "b.cc:2", name="n")
FILES = {
    "p/a.py": "x = 1\n",
    "p/other.bin": bytes(range(256)),
    "b.cc": "int f() {\n  int y = 2;\n  return y;\n}\n",
    ".git/HEAD": "ref: refs/heads/main\n",
    ".hidden": "kept\n",
}


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file's bytes and time of change."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_everything_but_history_is_copied_and_the_original_stays(workshop: Workshop) -> None:
    workshop.put(FILES)
    (workshop.checkout / "p" / "other.bin").chmod(0o755)
    before = tree(workshop.checkout)
    workshop.make(RULES)
    assert tree(workshop.checkout) == before
    copied = tree(workshop.copy)
    added = {"p/_reprise_monitor.py", "_reprise_monitor.hpp", MANIFEST}
    assert set(copied) == {*before} - {".git/HEAD"} | added
    for name in ("p/other.bin", ".hidden"):
        assert copied[name] == before[name]
    assert os.access(workshop.copy / "p" / "other.bin", os.X_OK)


def test_running_twice_writes_nothing_new(workshop: Workshop) -> None:
    workshop.put(FILES)
    workshop.make(RULES)
    once = tree(workshop.copy)
    workshop.make(RULES)
    again = tree(workshop.copy)
    once.pop(MANIFEST), again.pop(MANIFEST)
    assert again == once


def test_instrumenting_a_copy_gives_the_same_bytes(workshop: Workshop) -> None:
    workshop.put(FILES)
    workshop.make(RULES)
    second = workshop.folder / "second"
    rules = load_rules([workshop.folder / "monitors.rules"])
    source = Checkout(workshop.copy)
    write(source, second, plan(source, read_checks(rules), {}))
    bytes_of = {name: data for name, (data, _) in tree(second).items()}
    assert bytes_of == {name: data for name, (data, _) in tree(workshop.copy).items()}


def test_other_monitors_take_the_place_of_the_first(workshop: Workshop) -> None:
    workshop.put(FILES)
    workshop.make(RULES)
    built = workshop.copy / "build.o"
    built.write_text("made in the copy")
    workshop.make(monitor('value("y") == 2', "b.cc:2"))
    assert workshop.text("p/a.py") == "x = 1\n"
    assert not (workshop.copy / "p" / "_reprise_monitor.py").exists()
    assert "reprise::check" in workshop.text("b.cc")
    assert built.read_text() == "made in the copy"


def test_a_copy_that_was_edited_is_not_instrumented_again(workshop: Workshop) -> None:
    workshop.put(FILES)
    workshop.make(RULES)
    with (workshop.copy / "p" / "a.py").open("a") as file:
        file.write("y = 2\n")
    with pytest.raises(InstrumentError, match="has changed since it was instrumented"):
        workshop.plan(RULES, checkout=workshop.copy)


@pytest.mark.parametrize("place", ["", "inside/copy", "..", "../.."])
def test_a_copy_is_not_made_in_the_checkout_nor_around_it(workshop: Workshop, place: str) -> None:
    workshop.put(FILES)
    made = workshop.plan(RULES)
    with pytest.raises(InstrumentError):
        write(Checkout(workshop.checkout), workshop.checkout / place, made)
    assert read_manifest(workshop.checkout) is None


def test_a_link_does_not_hide_that_the_copy_is_in_the_checkout(workshop: Workshop) -> None:
    workshop.put(FILES)
    link = workshop.folder / "link"
    link.symlink_to(workshop.checkout / "p")
    with pytest.raises(InstrumentError, match="inside"):
        write(Checkout(workshop.checkout), link / "copy", workshop.plan(RULES))


def test_a_folder_of_somebody_elses_is_refused_and_an_empty_one_taken(workshop: Workshop) -> None:
    workshop.put(FILES)
    made = workshop.plan(RULES)
    workshop.copy.mkdir()
    write(Checkout(workshop.checkout), workshop.copy, made)
    other = workshop.folder / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("mine")
    with pytest.raises(InstrumentError, match="not empty"):
        write(Checkout(workshop.checkout), other, made)
    assert [path.name for path in other.iterdir()] == ["thesis.tex"]


def test_links_stay_links_and_lead_into_the_copy(workshop: Workshop) -> None:
    workshop.put(FILES)
    checkout = workshop.checkout
    (checkout / "relative.py").symlink_to("p/a.py")
    (checkout / "absolute.py").symlink_to(checkout / "p" / "a.py")
    (checkout / "p" / "loop").symlink_to(checkout)
    (checkout / "dangling").symlink_to("nowhere")
    workshop.make(RULES)
    for name in ("relative.py", "absolute.py"):
        assert (workshop.copy / name).is_symlink()
        assert (workshop.copy / name).resolve() == (workshop.copy / "p" / "a.py").resolve()
    assert (workshop.copy / "p" / "loop").resolve() == workshop.copy.resolve()
    assert os.readlink(workshop.copy / "dangling") == "nowhere"


def test_a_site_in_a_link_is_told_with_the_real_file(workshop: Workshop) -> None:
    workshop.put(FILES)
    (workshop.checkout / "link.py").symlink_to("p/a.py")
    made = workshop.plan(monitor('value("x") == 1', "link.py:1"))
    assert "name p/a.py" in made.refused[0].reason


def test_what_cannot_be_read_is_told_and_the_rest_copied(workshop: Workshop) -> None:
    workshop.put(FILES)
    os.mkfifo(workshop.checkout / "pipe")
    made = workshop.plan(RULES)
    failures = write(Checkout(workshop.checkout), workshop.copy, made)
    assert [failure.split(":")[0] for failure in failures] == ["pipe"]
    assert "_reprise" in workshop.text("p/a.py")


def test_a_full_disk_is_told_with_the_file_and_the_next_run_goes_on(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.put(FILES)
    made = workshop.plan(RULES)

    def full(path: Path, data: bytes) -> int:
        with open(path, "wb") as file:
            if path.name != "b.cc":
                return file.write(data)
            file.write(data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_bytes", full)
        with pytest.raises(InstrumentError, match=r"copy/b\.cc: no space left .* is not whole"):
            write(Checkout(workshop.checkout), workshop.copy, made)
    assert not (workshop.copy / "b.cc").exists()
    assert write(Checkout(workshop.checkout), workshop.copy, made) == []
    assert "_reprise" in workshop.text("b.cc")


def test_a_file_of_the_recorders_name_in_the_checkout_is_told(workshop: Workshop) -> None:
    workshop.put({**FILES, "p/_reprise_monitor.py": "mine\n"})
    with pytest.raises(InstrumentError, match=r"p/_reprise_monitor\.py is in the checkout"):
        workshop.plan(RULES)


def test_a_damaged_manifest_is_told(workshop: Workshop) -> None:
    workshop.put(FILES)
    workshop.make(RULES)
    (workshop.copy / MANIFEST).write_text("{")
    with pytest.raises(InstrumentError, match="damaged"):
        workshop.plan(RULES, checkout=workshop.copy)


def test_a_manifest_that_names_files_elsewhere_is_refused(workshop: Workshop) -> None:
    workshop.put(FILES)
    victim = workshop.folder / "victim.txt"
    victim.write_text("mine")
    for name in ("../victim.txt", str(victim), "p/../../victim.txt"):
        workshop.make(RULES)
        manifest = workshop.copy / MANIFEST
        text = manifest.read_text()
        manifest.write_text(text.replace('"recorders": [', f'"recorders": [\n  "{name}",'))
        with pytest.raises(InstrumentError, match="outside of the copy"):
            workshop.make(RULES)
        manifest.write_text(text)
    assert victim.read_text() == "mine"


def test_nothing_is_written_through_links_in_the_copy(workshop: Workshop) -> None:
    workshop.put(FILES)
    workshop.make(RULES)
    elsewhere = workshop.folder / "elsewhere"
    elsewhere.mkdir()
    for file in (workshop.copy / "p").iterdir():
        file.unlink()
    (workshop.copy / "p").rmdir()
    (workshop.copy / "p").symlink_to(elsewhere)
    workshop.make(RULES)
    assert not list(elsewhere.iterdir())
    assert not (workshop.copy / "p").is_symlink() and (workshop.copy / "p" / "a.py").is_file()
