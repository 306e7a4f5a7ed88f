"""``python -m reprise``: the same as the ``reprise`` command."""

from reprise.cli.main import main

main()
