"""The service: a forum over HTTP, for a page, a widget and programs.

::

    http.py ─▶ engine.py ─▶ Forum            engine.py and schemas.py know no HTTP; http.py and its kind know no store
"""
