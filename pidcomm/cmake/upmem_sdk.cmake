# The target pidcomm::upmem_sdk: host headers and library of the UPMEM SDK in PIDCOMM_UPMEM_HOME.
option(PIDCOMM_UPMEM_VERSION_CHECK
  "Refuse versions of the UPMEM SDK that the library does not support" ON)

set(PIDCOMM_UPMEM_OLDEST 2021.3)
set(PIDCOMM_UPMEM_NEWEST 2025.1)
set(version_file ${PIDCOMM_UPMEM_HOME}/share/upmem/version)
set(PIDCOMM_UPMEM_VERSION "")
if(EXISTS ${version_file})
  file(READ ${version_file} version_text)
  if(version_text MATCHES "([0-9]+\\.[0-9]+\\.[0-9]+)")
    set(PIDCOMM_UPMEM_VERSION ${CMAKE_MATCH_1})
  endif()
endif()
find_library(PIDCOMM_UPMEM_LIBRARY dpu PATHS ${PIDCOMM_UPMEM_HOME}/lib NO_DEFAULT_PATH NO_CACHE)
if(NOT PIDCOMM_UPMEM_LIBRARY OR NOT EXISTS ${PIDCOMM_UPMEM_HOME}/include/dpu/dpu.h)
  message(FATAL_ERROR
    "PIDCOMM_UPMEM_HOME (${PIDCOMM_UPMEM_HOME}) is no UPMEM SDK: it needs include/dpu/dpu.h and lib/libdpu.so")
endif()
if(PIDCOMM_UPMEM_VERSION_CHECK)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" release "${PIDCOMM_UPMEM_VERSION}")
  set(advice
    "pidcomm supports ${PIDCOMM_UPMEM_OLDEST} to ${PIDCOMM_UPMEM_NEWEST}. -DPIDCOMM_UPMEM_VERSION_CHECK=OFF skips this check; \
then run pidcomm-doctor first")
  if(NOT release)
    message(FATAL_ERROR
      "the version of the UPMEM SDK in ${PIDCOMM_UPMEM_HOME} is unknown (share/upmem/version does not state it); ${advice}")
  elseif(release VERSION_LESS PIDCOMM_UPMEM_OLDEST OR release VERSION_GREATER PIDCOMM_UPMEM_NEWEST)
    message(FATAL_ERROR
      "the UPMEM SDK in ${PIDCOMM_UPMEM_HOME} is version ${PIDCOMM_UPMEM_VERSION}; ${advice}")
  endif()
endif()
message(STATUS "UPMEM SDK ${PIDCOMM_UPMEM_VERSION}: ${PIDCOMM_UPMEM_LIBRARY}")

if(NOT TARGET pidcomm::upmem_sdk)
  add_library(pidcomm::upmem_sdk UNKNOWN IMPORTED GLOBAL)
endif()
set_target_properties(pidcomm::upmem_sdk PROPERTIES IMPORTED_LOCATION ${PIDCOMM_UPMEM_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${PIDCOMM_UPMEM_HOME}/include/dpu)
