# Toolchain file: CMake projects that use it, or include it after project(), compile PE programs
# with the compiler of dpuemu.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR dpu)
get_filename_component(UPMEM_HOME "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

# Programs need an entry point and libraries of the linker, so CMake tests the compiler without
# linking.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_COMPILER "${UPMEM_HOME}/bin/dpu-upmem-dpurte-clang")
set(CMAKE_ASM_COMPILER "${CMAKE_C_COMPILER}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
