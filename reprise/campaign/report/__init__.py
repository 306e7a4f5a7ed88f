"""What a run came to, for people and for tools: text, JSON and a page.

``summary`` gathers it all from the run's folder once; ``text``, ``document`` (JSON) and ``page``
(HTML; ``chart``, ``layout``, ``drawing`` and ``highlight`` make its pictures) write it down;
``comparison`` does the same for several runs. Nothing here changes a run.
"""
