#!/bin/sh
# Runs every native test executable of a build folder, as many at once as there are CPUs; prints the closing line of each that passes, and
# all that one says that fails. Fails if one fails or none is there. Usage: tests/run_native.sh BUILD_FOLDER
set -u
cd "$1" || exit 1
# Those that take longest come first.
tests=$(find tests/native/test_collectives* pidcomm-doctor tests/native/doctor_sdk_door tests/native/test_* emulator/dpuemu_tests \
  examples/example_* -maxdepth 0 -type f -perm -u+x 2>/dev/null | awk '!seen[$0]++')
[ -n "$tests" ] || { echo "no tests in $1"; exit 1; }
printf '%s\n' $tests | xargs -P "$(nproc)" -n 1 sh -c '
  case $0 in *doctor*) set -- --quick --ranks 2 ;; esac
  if said=$("./$0" "$@" 2>&1); then
    printf "%s: %s\n" "$0" "$(printf "%s\n" "$said" | tail -n 1)"
  else
    printf "%s: FAILED\n%s\n" "$0" "$said"
    exit 1
  fi'
