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
