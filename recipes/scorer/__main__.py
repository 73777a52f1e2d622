"""Fit the scorer's weights on all forums and write them into the package: ``python -m recipes.scorer``.

It needs the data sets (``ASKALIKE_DATA``) and MiniLM's folder (``ASKALIKE_MINILM``), and takes some ten minutes once
the forums are built. Then ``python -m benchmarks scorer judgements groups encoders quality_search drawn_queries``
measures what rests on the weights.
"""

from __future__ import annotations

import argparse

from recipes.folders import REPOSITORY
from recipes.scorer.fit import WEIGHTS, package_weights
from recipes.scorer.pairs import all_pairs


def main() -> None:
    """Fit and write."""
    argparse.ArgumentParser(prog="python -m recipes.scorer", description=__doc__).parse_args()
    _, judged, known, _ = all_pairs()
    WEIGHTS.write_text(package_weights([*judged, *known]), encoding="utf-8")
    print(f"wrote {WEIGHTS.relative_to(REPOSITORY)}")


if __name__ == "__main__":
    main()
