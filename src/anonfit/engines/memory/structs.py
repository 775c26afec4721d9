# SPDX-License-Identifier: Apache-2.0
"""The structures that kernels share, as one pointer each: passing dozens of arrays one by one would make compiling
several times slower. Kernels read their fields by the names of the tuples they are made from. Packed rows stay a tuple:
they are read in the innermost loops, where a pointer more would be felt.
"""

from __future__ import annotations

from typing import Any, TypeVar

from numba.core import types as _types
from numba.experimental import structref as _structref

from anonfit.compiling import kernel
from anonfit.engines.memory.guard import Guard
from anonfit.engines.memory.guide import Guide
from anonfit.engines.memory.layout import Columns
from anonfit.engines.memory.scratch import Scratch

__all__ = ["shared"]

Fields = TypeVar("Fields", Columns, Guide, Guard, Scratch)
structref: Any = _structref
types: Any = _types


class _Struct(types.StructRef):  # type: ignore[misc]
    def preprocess_fields(self, fields: Any) -> Any:
        """Fields have the types of values, not of constants."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


@structref.register
class ColumnsType(_Struct):
    """Columns."""


@structref.register
class GuideType(_Struct):
    """Guide."""


@structref.register
class GuardType(_Struct):
    """Guard."""


@structref.register
class ScratchType(_Struct):
    """Scratch."""


class ColumnsStruct(structref.StructRefProxy):  # type: ignore[misc]
    """Columns."""


class GuideStruct(structref.StructRefProxy):  # type: ignore[misc]
    """Guide."""


class GuardStruct(structref.StructRefProxy):  # type: ignore[misc]
    """Guard."""


class ScratchStruct(structref.StructRefProxy):  # type: ignore[misc]
    """Scratch."""


for _struct, _type, _tuple in (
    (ColumnsStruct, ColumnsType, Columns),
    (GuideStruct, GuideType, Guide),
    (GuardStruct, GuardType, Guard),
    (ScratchStruct, ScratchType, Scratch),
):
    structref.define_constructor(_struct, _type, list(_tuple._fields))
    structref.define_boxing(_type, _struct)


@kernel
def _columns(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any, j: Any, k: Any) -> Any:
    return ColumnsStruct(a, b, c, d, e, f, g, h, i, j, k)


@kernel
def _guide(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
    return GuideStruct(a, b, c, d, e, f)


@kernel
def _guard(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any, j: Any) -> Any:
    return GuardStruct(a, b, c, d, e, f, g, h, i, j)


@kernel
def _scratch(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any, j: Any, k: Any) -> Any:
    return ScratchStruct(a, b, c, d, e, f, g, h, i, j, k)


_MAKERS: dict[type, Any] = {Columns: _columns, Guide: _guide, Guard: _guard, Scratch: _scratch}


def shared(fields: Fields) -> Fields:
    """A tuple of arrays as the structure that kernels are given in its place."""
    made: Fields = _MAKERS[type(fields)](*fields)
    return made
