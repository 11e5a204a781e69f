#!/bin/sh
# Runs every native test executable of a build folder; fails if one fails or none is there. Usage: tests/run_native.sh BUILD_FOLDER
set -u
status=0
count=0
for test in "$1"/emulator/dpuemu_tests "$1"/tests/native/test_* "$1"/examples/example_*; do
  if [ -f "$test" ] && [ -x "$test" ]; then
    count=$((count + 1))
    printf '%s: ' "${test#"$1"/}"
    "$test" || status=1
  fi
done
for doctor in "$1"/pidcomm-doctor "$1"/tests/native/doctor_sdk_door; do
  printf '%s: ' "${doctor#"$1"/}"
  if said=$("$doctor" --quick --ranks 2); then
    printf '%s\n' "$said" | tail -n 1
  else
    printf '%s\n' "$said"
    status=1
  fi
done
[ "$count" -gt 0 ] || { echo "no tests in $1"; exit 1; }
exit $status
