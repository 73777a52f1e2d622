"""Fit the scorer's weights on all forums and write them into the package: ``python -m recipes.scorer``.

It needs the data sets (``ASKALIKE_DATA``), and takes some twenty minutes of one core: words of forums are indexed, and
the bundled encoder reads 15,000 questions. Then ``python -m benchmarks scorer groups quality_search``
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
    WEIGHTS.write_text(package_weights(all_pairs()), encoding="utf-8")
    print(f"wrote {WEIGHTS.relative_to(REPOSITORY)}")


if __name__ == "__main__":
    main()
