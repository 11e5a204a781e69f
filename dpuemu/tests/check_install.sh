#!/bin/sh
# Installs a build folder into a prefix and moves the prefix. Builds an UPMEM program against it
# with CMake, with pkg-config and with the tools of the stand-in SDK, and runs it. Usage:
# dpuemu/tests/check_install.sh BUILD_FOLDER. Prints `N passed, M failed`.
set -u
build=$(cd "$1" && pwd)
. "$(dirname "$0")/../../tools/installation_checks.sh"
program=$folder/program

write_project() {
  cat >"$program/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.19)
project(program LANGUAGES C)
find_package(dpuemu 0.1 REQUIRED)
add_executable(host host.c)
target_link_libraries(host PRIVATE dpuemu::dpuemu)
execute_process(COMMAND ${dpuemu_PE_COMPILER} -DNR_TASKLETS=16 -o kernel kernel.c
                WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} COMMAND_ERROR_IS_FATAL ANY)
END
}
runs() { (cd "$program" && "$1" | grep ', 0 wrong'); }
with_cmake() {
  write_project && cmake -G Ninja -S "$program" -B "$program/build" "-DCMAKE_PREFIX_PATH=$prefix" &&
    cmake --build "$program/build" && runs build/host
}
with_flags() { # the command that prints flags
  (cd "$program" && eval "cc -std=c11 -o host host.c $("$@")") && runs ./host
}
with_sdk_tools() { PATH=$(dirname "$(find "$prefix" -name dpu-pkg-config)"):$PATH "$@"; }

cp -r "$root/examples/vector_add" "$program"
check "runtime component" cmake --install "$build" --prefix "$folder/runtime" --component runtime
check "the runtime component has only the library" \
  sh -c '! find "$1" -type f ! -name "libdpuemu.so*" | grep .' - "$folder/runtime"
check "install" cmake --install "$build" --prefix "$folder/first"
mv "$folder/first" "$prefix"
check "no file of the package names a folder of the build" names_no_folder_of_here dpuemu
check "find_package" with_cmake
check "dpu-pkg-config" with_sdk_tools with_flags dpu-pkg-config --cflags --libs dpu
check "dpu-pkg-config, make" with_sdk_tools sh -c 'rm -f "$1/host" && make -C "$1"' - "$program"
if command -v pkg-config >/dev/null; then
  check "pkg-config" with_pkg_config with_flags pkg-config --cflags --libs dpuemu
else
  echo "pkg-config is missing: its check is skipped"
fi
finish
