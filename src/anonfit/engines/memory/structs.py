# SPDX-License-Identifier: Apache-2.0
"""The structures that kernels share, as one pointer each: passing dozens of arrays one by one would make compiling
several times slower. Kernels read fields by the names of the tuple a structure is made from.

Kernels borrow the arrays. They do not count themselves among an array's users each time they read a field, which would
cost more than most of what they do with it, above all where two threads count in the same place. Who calls a kernel
keeps the structure.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np
from numba import extending as _extending
from numba.core import cgutils as _cgutils
from numba.core import types as _types
from numba.core.typing import templates as _templates
from numba.np import arrayobj as _arrays
from numba.np import numpy_support as _numpy_support

__all__ = ["shared"]

Fields = TypeVar("Fields", bound=tuple[Any, ...])
extending: Any = _extending
cgutils: Any = _cgutils
types: Any = _types
templates: Any = _templates
arrays: Any = _arrays
numpy_support: Any = _numpy_support


class SharedType(types.Type):  # type: ignore[misc]
    """A structure as the compiler sees it: a pointer to words. A field is one word, a whole number; or it is an array:
    where its memory is, then its shape.
    """

    def __init__(self, tuple_name: str, fields: tuple[tuple[str, Any], ...]) -> None:
        self.fields = dict(fields)
        self.places: dict[str, int] = {}
        used = 0
        for name, kind in fields:
            self.places[name] = used
            used += 1 + getattr(kind, "ndim", 0)
        super().__init__(name=f"Shared({tuple_name}, {fields})")


class Shared:
    """A structure as Python holds it."""

    def __init__(self, fields: Any) -> None:
        words: list[int] = []
        kinds = []
        for name, value in zip(fields._fields, fields, strict=True):
            kind = types.int64
            if isinstance(value, np.ndarray):
                assert value.flags.c_contiguous, name
                kind = types.Array(numpy_support.from_dtype(value.dtype), value.ndim, "C")
                words += [value.ctypes.data, *value.shape]
            else:
                words.append(int(value))
            kinds.append((name, kind))
        self.fields = fields  # they live as long as the structure
        self.words = np.array(words, np.int64)
        self.address = self.words.ctypes.data
        self._numba_type_ = SharedType(type(fields).__name__, tuple(kinds))


def shared(fields: Fields) -> Fields:
    """A tuple of arrays and whole numbers as the structure that kernels are given in its place."""
    return cast("Fields", Shared(fields))


extending.register_model(SharedType)(extending.models.OpaqueModel)


@extending.unbox(SharedType)  # type: ignore[untyped-decorator]
def _unbox(_: Any, value: Any, context: Any) -> Any:
    number = context.pyapi.object_getattr_string(value, "address")
    address = context.pyapi.long_as_longlong(number)
    context.pyapi.decref(number)
    return extending.NativeValue(context.builder.inttoptr(address, cgutils.voidptr_t))


@extending.infer_getattr
class _FieldTypes(templates.AttributeTemplate):  # type: ignore[misc]
    key = SharedType

    def generic_resolve(self, struct: SharedType, name: str) -> Any:
        return struct.fields.get(name)


@extending.lower_getattr_generic(SharedType)  # type: ignore[untyped-decorator]
def _field(context: Any, builder: Any, struct: SharedType, value: Any, name: str) -> Any:
    """A field; an array as one of memory that it does not own."""
    kind, place = struct.fields[name], struct.places[name]
    words = builder.bitcast(value, cgutils.intp_t.as_pointer())

    def word(offset: int) -> Any:
        return builder.load(builder.gep(words, [cgutils.intp_t(place + offset)]))

    if not isinstance(kind, types.Array):
        return word(0)
    shape = [word(1 + axis) for axis in range(kind.ndim)]
    itemsize = cgutils.intp_t(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides = [itemsize]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    array = context.make_array(kind)(context, builder)
    data = builder.inttoptr(word(0), context.get_data_type(kind.dtype).as_pointer())
    arrays.populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return array._getvalue()
