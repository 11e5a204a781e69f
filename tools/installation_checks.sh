# Functions for the scripts that check an installation in a prefix. A script sets `build`, the build
# folder to install, and then sources this file.
root=$(cd "$(dirname "$0")/.." && pwd)
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
folder="$temporary/a folder"
mkdir "$folder"
prefix=$folder/prefix
passed=0
failed=0

check() { # name of the check, command
  what=$1
  shift
  if "$@" >"$folder/log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED %s\n' "$what"
    sed 's/^/  /' "$folder/log"
  fi
}

names_no_folder_of_here() { # the packages for CMake and pkg-config; $1: a package
  find "$prefix" \( -name '*.cmake' -o -name '*.pc' \) -exec grep -lF -e "$root" -e "$build" -e "$folder" {} + \
    >"$folder/found"
  cat "$folder/found"
  ! [ -s "$folder/found" ] && [ -n "$(find "$prefix" -name "$1.pc")" ]
}

with_pkg_config() { PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name dpuemu.pc)") "$@"; }

finish() { # ends the script
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
  exit
}
