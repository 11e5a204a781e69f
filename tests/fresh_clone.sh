#!/usr/bin/env bash
# What a newcomer does, as README.md says it: in a copy of the committed tree, with nothing of this one in PATH or the environment.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
git archive HEAD | tar -x -C "$folder"
cd "$folder"
env -i HOME="$HOME" LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin bash -ex <<'COMMANDS'
make demo
make test
COMMANDS
