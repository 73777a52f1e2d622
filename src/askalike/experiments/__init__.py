"""Experiments: rankings made by systems, judged by ``evaluate``; the only room that knows both.

May import: everything but cli and serve.
"""
