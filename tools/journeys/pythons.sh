#!/usr/bin/env bash
# Installs the core with every Python 3.11 or newer that this machine has, each into a bare environment, and runs the
# demonstration. What is not there is skipped and named. Arguments: the package to install (the checkout by default).
set -euo pipefail
source=$(realpath "${1:-$(dirname "$0")/../..}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tried=0
for version in 3.11 3.12 3.13 3.14; do
  python=$(command -v "python$version" || true)
  if [ -n "$python" ] && ! "$python" -c 'import ensurepip, sqlite3, ssl' 2>/dev/null; then python=; fi
  for one in ~/.pyenv/versions/"$version".*/bin/python; do
    [ -n "$python" ] || ! [ -x "$one" ] || python=$one
  done
  if [ -z "$python" ]; then
    echo "Python $version: not on this machine, skipped"
    continue
  fi
  began=$SECONDS
  "$python" -m venv "$folder/$version"
  "$folder/$version/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "$source"
  (cd "$folder" && "$folder/$version/bin/askalike" demo --into "$version.forum" --json) > "$folder/$version.json"
  "$folder/$version/bin/python" - "$folder/$version.json" <<'PYTHON'
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    found = json.load(file)
sys.exit(0 if len(found) == 3 else f"the demonstration answered {len(found)} questions, expected 3")
PYTHON
  tried=$((tried + 1))
  echo "$("$folder/$version/bin/python" --version): installed and answered in $((SECONDS - began)) s," \
    "$(du -sm "$folder/$version" | cut -f1) MB"
done
if [ "$tried" = 0 ]; then
  echo "no Python 3.11 or newer was found" >&2
  exit 1
fi
