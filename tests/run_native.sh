#!/bin/sh
# Runs every native test executable of a build folder: one per CPU at a time, at most four, because each has an emulated machine. Prints the
# last line of each test that passes and the whole output of each that fails. Fails if a test fails or is missing. Usage:
# tests/run_native.sh BUILD_FOLDER [WORD]; with a WORD, tests whose path contains it do not run.
set -u
cd "$1" || exit 1
doctors='pidcomm-doctor tests/native/doctor_sdk_access'
left_out=${2-nothing left out}
for needed in $doctors emulator/dpuemu_tests artifact/tests/test_artifact tests/native/test_collectives; do
  case $needed in *"$left_out"*) continue ;; esac
  [ -x "$needed" ] || { echo "no $needed in $1"; exit 1; }
done
# The longest tests come first.
tests=$(find tests/native/test_collectives* $doctors tests/native/test_* artifact/tests/test_* emulator/dpuemu_*tests examples/example_* \
  -maxdepth 0 -type f -perm -u+x 2>/dev/null | awk '!seen[$0]++' | grep -v -e "$left_out")
jobs=$(nproc)
[ "$jobs" -le 4 ] || jobs=4
printf '%s\n' $tests | xargs -P "$jobs" -n 1 sh -c '
  case $0 in *doctor*) set -- --quick --ranks 2 ;; esac
  case $0 in *_sdk_access) export PIDCOMM_TEST_EFFORT=small ;; esac  # the grids run in full once
  output=$("./$0" "$@" 2>&1)
  code=$?
  if [ "$code" -eq 0 ]; then
    printf "%s: %s\n" "$0" "$(printf "%s\n" "$output" | tail -n 1)"
  else
    printf "%s: FAILED with %s\n%s\n" "$0" "$code" "$output"
    exit 1
  fi'
