#!/bin/sh
# Installs a build folder into a temporary prefix and moves the prefix. Builds the examples against it with CMake and with pkg-config, and
# runs them. Then configures a project that has this one as a subfolder. Does not compile the library. Usage: tests/check_install.sh
# BUILD_FOLDER. Prints `N passed, M failed`.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
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
only_the_runtime() { # compares file names without version numbers
  found=$(find "$folder/runtime" -type f | sed -e 's/.*\///' -e 's/\.so.*/.so/' | sort | tr '\n' ' ')
  echo "$found"
  test "$found" = "libdpuemu.so libpidcomm.so libpidcomm_artifact.so pidcomm-doctor "
}
no_path_of_here() {
  find "$prefix" \( -name '*.cmake' -o -name '*.pc' \) -exec grep -lF -e "$root" -e "$build" -e "$folder" {} + >"$folder/found"
  cat "$folder/found"
  ! [ -s "$folder/found" ] && [ -n "$(find "$prefix" -name pidcomm.pc)" ]
}
sdk_tools_find_the_libraries() { # the emulated SDK's and the artifact's
  libraries=$(dirname "$(find "$prefix" -name libdpuemu.so)")
  sdk=$libraries/dpuemu
  PATH=$libraries/pidcomm/artifact/bin:$sdk/bin:$PATH dpu-pkg-config --libs dpu >"$folder/output" || return 1
  cat "$folder/output"
  grep -F -e "-L$libraries " "$folder/output" | grep -F -e '-lpidcomm_artifact -lpidcomm ' | grep -F -e '-ldpuemu'
}
artifact_program=$root/artifact/tests/test_artifact_program.c
artifact_with_sdk_tools() {
  (PATH=$libraries/pidcomm/artifact/bin:$sdk/bin:$PATH && cc -std=c11 -o "$folder/artifact_program" "$artifact_program" \
    $(dpu-pkg-config --cflags --libs dpu)) && "$folder/artifact_program"
}
artifact_with_pkg_config() {
  cc -std=c11 -o "$folder/artifact_program" "$artifact_program" \
    $(with_pkg_config pkg-config --cflags --libs pidcomm-artifact) && "$folder/artifact_program"
}
artifact_with_cmake() {
  mkdir "$folder/artifact" && cat >"$folder/artifact/CMakeLists.txt" <<END &&
cmake_minimum_required(VERSION 3.25)
project(parent LANGUAGES C CXX)
find_package(pidcomm 0.1 REQUIRED)
add_executable(program $artifact_program)
target_link_libraries(program PRIVATE pidcomm::artifact)
END
    cmake -G Ninja -S "$folder/artifact" -B "$folder/artifact/build" "-DCMAKE_PREFIX_PATH=$prefix" &&
    cmake --build "$folder/artifact/build" && "$folder/artifact/build/program"
}
with_pkg_config() { PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name pidcomm.pc)") "$@"; }
examples() { # a copy to build in
  rm -rf "$folder/examples" && cp -r "$root/examples" "$folder/examples" && cd "$folder/examples"
}

check "runtime component" cmake --install "$build" --prefix "$folder/runtime" --component runtime
check "the runtime component has only libraries and the doctor" only_the_runtime
check "the installed doctor starts" "$folder/runtime/bin/pidcomm-doctor" --help
check "install" cmake --install "$build" --prefix "$folder/first"
mv "$folder/first" "$prefix"
check "no file of the package names a folder of the build" no_path_of_here
check "the tools of the stand-in SDK find the libraries" sdk_tools_find_the_libraries
check "a program of the published artifact, dpu-pkg-config" artifact_with_sdk_tools
check "a program of the published artifact, find_package" artifact_with_cmake

examples
check "find_package, configure" cmake -G Ninja -S . -B build "-DCMAKE_PREFIX_PATH=$prefix"
check "find_package, build" cmake --build build
check "find_package, run" ctest --test-dir build
if command -v pkg-config >/dev/null; then
  examples
  check "pkg-config, build and run" with_pkg_config make check
  check "a program of the published artifact, pkg-config" artifact_with_pkg_config
else
  echo "pkg-config is missing: its checks are skipped"
fi

check "as a subfolder, configure" cmake -G Ninja -S "$root/tests/subfolder" -B "$folder/parent"
check "as a subfolder, install" cmake --install "$folder/parent" --prefix "$folder/nothing"
check "as a subfolder, nothing is installed" sh -c '! find "$1" -type f | grep .' - "$folder/nothing"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
