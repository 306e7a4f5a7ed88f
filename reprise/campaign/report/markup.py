"""HTML and SVG that cannot be broken by what is put into it.

Elements are made by :func:`tag`. A string inside one is text and is escaped, always; only what
``tag`` itself made (:class:`Markup`) is taken as it is. So a hostile name in a model, a rule or a
compiler's message is shown, never interpreted.
"""

from __future__ import annotations

from html import escape

from reprise.lang.display import printable

_VOID = {"meta", "link", "input", "br", "hr"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | int | float | None
"""``None`` leaves nothing; numbers are written as they are."""


def tag(name: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Markup:
    """An element. ``class_`` is ``class``, ``aria_label`` is ``aria-label``; True is an attribute
    without a value, None and False leave it out."""
    words = [name]
    for key, value in attributes.items():
        spelled = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(spelled)
        elif value is not None and value is not False:
            text = f"{value:g}" if isinstance(value, float) else str(value)
            words.append(f'{spelled}="{escape(shown(text), quote=True)}"')
    start = f"<{' '.join(words)}>"
    return Markup(start if name in _VOID else f"{start}{join(*children)}</{name}>")


def join(*children: Child) -> Markup:
    """Children one after the other, what is text escaped."""
    return Markup(
        "".join(
            c if isinstance(c, Markup) else escape(shown(str(c)), quote=False)
            for c in children
            if c is not None
        )
    )


def shown(text: str) -> str:
    """Text as it may stand in a page: characters that no page may hold, or that turn its direction,
    as escapes; lines and tabs as they are."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" else printable(c) for c in text)
