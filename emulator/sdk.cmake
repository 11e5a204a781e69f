# dpuemu_install_sdk(folder component): installs the stand-in SDK with the layout of the UPMEM SDK. The library must be two folders above
# folder/lib: `-ldpu` and `-ldpuverbose` find linker scripts that name it.
function(dpuemu_install_sdk folder component)
  set(source ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  set(built ${CMAKE_CURRENT_BINARY_DIR}/dpuemu_sdk)
  install(DIRECTORY ${source}/bin ${source}/pe ${source}/share DESTINATION ${folder} COMPONENT ${component} USE_SOURCE_PERMISSIONS
          PATTERN __pycache__ EXCLUDE)
  install(DIRECTORY ${source}/include/ DESTINATION ${folder}/include/dpu COMPONENT ${component})
  install(FILES ${source}/upmem_env.sh DESTINATION ${folder} COMPONENT ${component})
  foreach(name dpu dpuverbose)
    file(GENERATE OUTPUT ${built}/lib${name}.so CONTENT "INPUT(../../$<TARGET_SONAME_FILE_NAME:dpuemu>)\n")
    install(FILES ${built}/lib${name}.so DESTINATION ${folder}/lib COMPONENT ${component})
  endforeach()
endfunction()
