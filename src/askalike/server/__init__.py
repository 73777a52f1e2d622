"""The service: a forum over HTTP, for a page, a widget and programs.

::

    app.py ─▶ routes.py ─▶ engine.py ─▶ Forum      engine.py and what it imports know no HTTP; the others know no store
"""
