"""A forum kept in step with a living site: webhooks for speed, a poll that reconciles for truth.

::

    webhook ──▶ state (events, threads to read) ──▶ follower ──▶ forum
    poll, sweep ──────────┘                            └─ reads each thread as it is now

A webhook says which thread changed, and never how: the follower reads it from the site itself. So events may come
twice, late, in any order or not at all, and whoever could forge one could make it read, and nothing else.
"""
