# Source this file in bash or zsh: builds and programs of that shell then find the stand-in SDK, as
# after `eval "$(dpuemu env)"`.
UPMEM_HOME=$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")" && pwd)
export UPMEM_HOME
export PATH="$UPMEM_HOME/bin${PATH:+:$PATH}"
export LIBRARY_PATH="$UPMEM_HOME/lib${LIBRARY_PATH:+:$LIBRARY_PATH}"
export LD_LIBRARY_PATH="$(dpu-pkg-config --variable=libdir dpu)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PYTHONPATH="$UPMEM_HOME/share/upmem/python${PYTHONPATH:+:$PYTHONPATH}"
