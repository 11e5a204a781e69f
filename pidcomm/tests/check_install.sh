#!/bin/sh
# Installs the build folders of dpuemu and pidcomm into a prefix and moves the prefix. Builds the
# examples against it with CMake and with pkg-config, and runs them. Then configures a project that
# has pidcomm as a subfolder. Does not compile the library. Usage: pidcomm/tests/check_install.sh
# BUILD_FOLDER BUILD_FOLDER_OF_DPUEMU. Prints `N passed, M failed`.
set -u
build=$(cd "$1" && pwd)
dpuemu=$(cd "$2" && pwd)
. "$(dirname "$0")/../../tools/installation_checks.sh"

install_both() { # prefix, options
  to=$1
  shift
  cmake --install "$dpuemu" --prefix "$to" "$@" && cmake --install "$build" --prefix "$to" "$@"
}
only_the_runtime() { # compares file names without version numbers
  found=$(find "$folder/runtime" -type f | sed -e 's/.*\///' -e 's/\.so.*/.so/' | sort | tr '\n' ' ')
  echo "$found"
  test "$found" = "libdpuemu.so libpidcomm.so libpidcomm_artifact.so pidcomm-doctor "
}
libraries() { dirname "$(find "$prefix" -name libdpuemu.so)"; }
artifact_program=$root/artifact/tests/test_artifact_program.c
artifact_with_flags() { # the command that prints flags
  eval "cc -std=c11 -o '$folder/artifact_program' '$artifact_program' $("$@")" &&
    "$folder/artifact_program"
}
artifact_with_sdk_tools() {
  PATH=$(libraries)/pidcomm/artifact/bin:$(libraries)/dpuemu/bin:$PATH \
    artifact_with_flags dpu-pkg-config --cflags --libs dpu
}
artifact_with_cmake() {
  mkdir "$folder/artifact" && cat >"$folder/artifact/CMakeLists.txt" <<END &&
cmake_minimum_required(VERSION 3.25)
project(parent LANGUAGES C CXX)
find_package(pidcomm 0.1 REQUIRED)
add_executable(program "$artifact_program")
target_link_libraries(program PRIVATE pidcomm::artifact)
END
    cmake -G Ninja -S "$folder/artifact" -B "$folder/artifact/build" "-DCMAKE_PREFIX_PATH=$prefix" &&
    cmake --build "$folder/artifact/build" && "$folder/artifact/build/program"
}
examples() { # a copy to build in
  rm -rf "$folder/examples" && cp -r "$root/examples" "$folder/examples" && cd "$folder/examples"
}

check "runtime component" install_both "$folder/runtime" --component runtime
check "the runtime component has only libraries and the doctor" only_the_runtime
check "the installed doctor starts" "$folder/runtime/bin/pidcomm-doctor" --help
check "install" install_both "$folder/first"
mv "$folder/first" "$prefix"
check "no file of the package names a folder of the build" names_no_folder_of_here pidcomm
check "a program of the published artifact, dpu-pkg-config" artifact_with_sdk_tools
check "a program of the published artifact, find_package" artifact_with_cmake

examples
check "find_package, configure" cmake -G Ninja -S . -B build "-DCMAKE_PREFIX_PATH=$prefix"
check "find_package, build" cmake --build build
check "find_package, run" ctest --test-dir build
if command -v pkg-config >/dev/null; then
  examples
  check "pkg-config, build and run" with_pkg_config make check
  check "a program of the published artifact, pkg-config" \
    with_pkg_config artifact_with_flags pkg-config --cflags --libs pidcomm-artifact
else
  echo "pkg-config is missing: its checks are skipped"
fi

check "as a subfolder, configure" cmake -G Ninja -S "$root/tests/subfolder" -B "$folder/parent" \
  "-DCMAKE_PREFIX_PATH=$prefix"
check "as a subfolder, install" cmake --install "$folder/parent" --prefix "$folder/nothing"
check "as a subfolder, nothing is installed" sh -c '! find "$1" -type f | grep .' - "$folder/nothing"
finish
