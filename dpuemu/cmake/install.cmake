# The installed files and their folders. In a prefix: the library in lib, the stand-in SDK in
# lib/dpuemu. In a wheel: both in the package dpuemu. The SDK's tools look for the library above
# their folder, and `-ldpu` and `-ldpuverbose` find linker scripts that name the library two folders
# above.
include(CMakePackageConfigHelpers)
if(DPUEMU_BUILD_PYTHON)
  set(libdir dpuemu)
  set(sdkdir dpuemu/sdk)
  set(cmakedir dpuemu/cmake)
  set(pkgconfigdir dpuemu/pkgconfig)
  set(runtime python)
  set(development python)
  # A wheel cannot hold symbolic links: the file has the name that the loader opens.
  set_target_properties(dpuemu PROPERTIES VERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  set(namelink NAMELINK_SKIP)
  set(link_option [[-L${prefix}/dpuemu/sdk/lib -ldpu]]) # CMake finds no `-l:NAME`
else()
  include(GNUInstallDirs)
  set(libdir ${CMAKE_INSTALL_LIBDIR})
  set(sdkdir ${CMAKE_INSTALL_LIBDIR}/dpuemu)
  set(cmakedir ${CMAKE_INSTALL_LIBDIR}/cmake/dpuemu)
  set(pkgconfigdir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  set(runtime runtime)
  set(development development)
  set(namelink NAMELINK_COMPONENT development)
  set(link_option -ldpuemu)
endif()
set_target_properties(dpuemu PROPERTIES INSTALL_RPATH "$ORIGIN")

install(TARGETS dpuemu EXPORT dpuemu LIBRARY DESTINATION ${libdir} COMPONENT ${runtime} ${namelink}
        INCLUDES DESTINATION ${sdkdir}/include/dpu)
set(built ${CMAKE_CURRENT_BINARY_DIR}/package)
install(DIRECTORY bin compiler runtime share DESTINATION ${sdkdir} COMPONENT ${development}
  USE_SOURCE_PERMISSIONS
        PATTERN __pycache__ EXCLUDE PATTERN upmem_env.sh EXCLUDE)
install(FILES share/upmem_env.sh DESTINATION ${sdkdir} COMPONENT ${development})
install(DIRECTORY include/ DESTINATION ${sdkdir}/include/dpu COMPONENT ${development})
foreach(name dpu dpuverbose)
  file(GENERATE OUTPUT ${built}/lib${name}.so CONTENT
    "INPUT(../../$<TARGET_SONAME_FILE_NAME:dpuemu>)\n")
  install(FILES ${built}/lib${name}.so DESTINATION ${sdkdir}/lib COMPONENT ${development})
endforeach()

# The package for find_package(dpuemu) and pkg-config.
install(EXPORT dpuemu NAMESPACE dpuemu:: FILE dpuemuTargets.cmake DESTINATION ${cmakedir} COMPONENT
  ${development})
set(sdk "\${PACKAGE_PREFIX_DIR}/${sdkdir}")
configure_package_config_file(cmake/dpuemuConfig.cmake.in ${built}/dpuemuConfig.cmake
  INSTALL_DESTINATION ${cmakedir})
write_basic_package_version_file(${built}/dpuemuConfigVersion.cmake COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH prefix_from_pkgconfigdir /prefix/${pkgconfigdir} /prefix)
string(REGEX REPLACE "/$" "" prefix_from_pkgconfigdir ${prefix_from_pkgconfigdir})
configure_file(cmake/dpuemu.pc.in ${built}/dpuemu.pc @ONLY)
install(FILES ${built}/dpuemuConfig.cmake ${built}/dpuemuConfigVersion.cmake DESTINATION ${cmakedir}
  COMPONENT ${development})
install(FILES ${built}/dpuemu.pc DESTINATION ${pkgconfigdir} COMPONENT ${development})

# The build folder is a package too: -Ddpuemu_DIR=BUILD_FOLDER.
export(EXPORT dpuemu NAMESPACE dpuemu:: FILE ${CMAKE_CURRENT_BINARY_DIR}/dpuemuTargets.cmake)
set(sdk ${CMAKE_CURRENT_SOURCE_DIR})
configure_package_config_file(cmake/dpuemuConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/dpuemuConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_CURRENT_BINARY_DIR} INSTALL_PREFIX
                                ${CMAKE_CURRENT_BINARY_DIR})
configure_file(${built}/dpuemuConfigVersion.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/dpuemuConfigVersion.cmake COPYONLY)
