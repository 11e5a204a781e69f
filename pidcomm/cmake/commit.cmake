# Sets commit to the commit of the sources: the one that `git archive` wrote into commit.txt, or
# that of the git work tree, with -dirty if files other than measured rows differ from it. It is
# empty if there is neither.
file(STRINGS ${PROJECT_SOURCE_DIR}/commit.txt commit)
if(commit MATCHES "Format")
  set(commit "")
  find_package(Git QUIET)
  if(Git_FOUND)
    set(git ${GIT_EXECUTABLE} -C ${PROJECT_SOURCE_DIR})
    # A work tree of another project may surround the sources.
    execute_process(COMMAND ${git} ls-files --error-unmatch commit.txt
      RESULT_VARIABLE foreign OUTPUT_QUIET ERROR_QUIET)
    if(NOT foreign)
      execute_process(COMMAND ${git} rev-parse --short HEAD
        OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE)
      execute_process(COMMAND ${git} diff --quiet HEAD -- :/
        ":(top,exclude)pidcomm/bench/reference" ":(top,exclude)studies/bench/apps"
        RESULT_VARIABLE changed)
      if(changed)
        string(APPEND commit "-dirty")
      endif()
    endif()
  endif()
endif()
