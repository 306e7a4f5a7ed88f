"""Constraints and monitors from a compiler's sources (the second paper, §3.1, Step 2).

The way through it, one module a step:

1. ``extractor``: a folder of ``extractors/``, read: what to look for in one compiler (names of
   functions, files, languages, what names mean on the device). Data only.
2. ``files``: which files of a checkout are read, and as what text.
3. ``queries``: tree-sitter queries (``extractors/_common/LANGUAGE.scm`` and the extractor's own),
   the extractor's names put in.
4. ``sites``: the captures of one file become **facts** about *sites*. A site is one match of a
   query; the facts' relations are declared in ``rules/mining/facts.rules``, which says of each what
   it holds. ``expressions`` translates expressions of Python and C++ to the rule language.
5. ``derive``: the facts of all files and the rules of ``rules/mining/`` go into the Datalog engine.
   The rules, not this package, decide what a site gives: rows of ``monitored`` and ``constrained``,
   and of ``confidence``.
6. ``write``: these rows as one ``.rules`` file. ``mine`` does all of it, file by file with a cache.

To add a kind of site: a pattern in a ``.scm`` file whose outermost capture is ``@site.KIND``;
every other capture becomes a ``captured`` fact, and an ``expression`` fact where it can be
translated. Then a rule in ``rules/mining/`` that derives ``monitored`` or ``constrained`` from
them. Neither needs a change here."""
