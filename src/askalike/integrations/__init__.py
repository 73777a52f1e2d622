"""A forum as a part of other frameworks; each module needs its framework installed, and nothing imports it."""
