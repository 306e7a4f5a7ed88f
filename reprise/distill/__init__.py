"""From a finding to a rule: make it small, find out what of it matters, and say so as a pattern.

``trials`` runs programs and says whether they show the defect aimed at; everything else here asks
it. ``reduce`` makes a program small, ``generalise`` turns a small program into a pattern,
``tighten`` holds the pattern against programs that pass. Imports nothing of ``cli``.
"""
