#!/usr/bin/env bash
# What has to hold before a release: files of deployment that their own linters and schemas accept, the same hashes from
# two builds, sound wheel and sdist, one version everywhere, and a demonstration that runs where nothing but the wheel is
# installed. Argument: the Python with the group "release".
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-.venv/bin/python}
case $python in /*) ;; *) python=$PWD/$python ;; esac
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' src/askalike/_version.py)
grep -q "^version: $version\$" CITATION.cff || { echo "CITATION.cff has another version than $version" >&2; exit 1; }
grep -qE "^## \[$version\] - (Unreleased|[0-9]{4}-[0-9]{2}-[0-9]{2})\$" CHANGELOG.md \
  || { echo "CHANGELOG.md has no heading for $version" >&2; exit 1; }

tools_of=$(dirname "$python")
"$tools_of/check-jsonschema" --quiet --builtin-schema vendor.compose-spec deploy/compose*.yaml
"$tools_of/check-jsonschema" --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
"$python" -m pytest --noconftest -rs tests/deployment  # Helm and Compose by their own linters

for build in first second; do
  # from a copy of what is committed, so that nothing else in the checkout gets in
  mkdir "$folder/$build"
  git archive HEAD | tar -x -C "$folder/$build"
  "$python" -m build --outdir "$folder/$build-dist" "$folder/$build" > "$folder/$build.log" 2>&1 \
    || { cat "$folder/$build.log" >&2; exit 1; }
  (cd "$folder/$build-dist" && sha256sum ./*) > "$folder/$build.sums"
done
diff "$folder/first.sums" "$folder/second.sums" || { echo "two builds differ" >&2; exit 1; }
cat "$folder/first.sums"

"$python" -m twine check --strict "$folder"/first-dist/*
"$python" -m check_wheel_contents "$folder"/first-dist/*.whl

"$python" -m venv "$folder/bare"
"$folder/bare/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "$folder"/first-dist/*.whl
(cd "$folder" && bare/bin/askalike demo --into release.forum --json) > "$folder/demo.json"
"$python" -c 'import json, sys; sys.exit(0 if len(json.load(open(sys.argv[1]))) == 3 else "the demonstration failed")' \
  "$folder/demo.json"
mkdir -p dist
cp "$folder"/first-dist/* dist/
echo "askalike $version: built twice alike, checked, installed, demonstrated; the files are in dist/"
