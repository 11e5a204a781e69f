# Source this file in bash or zsh: builds and programs of that shell then find the stand-in SDK, as
# after `eval "$(dpuemu env)"`.
UPMEM_HOME=$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")" && pwd)
export UPMEM_HOME
export PATH="$UPMEM_HOME/bin${PATH:+:$PATH}"
export LIBRARY_PATH="$UPMEM_HOME/lib${LIBRARY_PATH:+:$LIBRARY_PATH}"
DPUEMU_LIBRARIES=$(dpu-pkg-config --variable=libdir dpu)
export LD_LIBRARY_PATH="$DPUEMU_LIBRARIES${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
unset DPUEMU_LIBRARIES
export PYTHONPATH="$UPMEM_HOME/share/upmem/python${PYTHONPATH:+:$PYTHONPATH}"
