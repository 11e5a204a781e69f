"""Types of the extension with the applications without PEs; see apps/*/cpu.cpp."""

from pidcomm.arguments import Array

def dlrm(
    tables: Array,
    table_rows: int,
    rows: Array,
    dense: Array,
    bottom: Array,
    bottom_widths: Array,
    top: Array,
    top_widths: Array,
    /,
) -> Array: ...
def mlp_layer(weights: Array, x: Array, relu: bool) -> Array: ...
