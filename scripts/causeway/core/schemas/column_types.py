"""How a column of a table is described: name, Arrow type, unit, and whether a value may be absent."""

import pyarrow as pa

I64 = pa.int64()
F64 = pa.float64()
U8 = pa.uint8()
U16 = pa.uint16()
U32 = pa.uint32()
TEXT = pa.string()
FLAG = pa.bool_()


def column(name: str, kind: pa.DataType, unit: str = "", nullable: bool = False) -> pa.Field:
    """Return one column; its unit ('' for plain numbers and texts) stands in the field's metadata under `unit`."""
    return pa.field(name, kind, nullable=nullable, metadata={"unit": unit} if unit else None)


def columns(names: str, kind: pa.DataType, unit: str = "", nullable: bool = False) -> list[pa.Field]:
    """Return columns of one type, in the order of their names, which spaces separate."""
    return [column(name, kind, unit, nullable) for name in names.split()]
