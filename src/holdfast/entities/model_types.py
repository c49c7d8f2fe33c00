"""Reads annotations: the type of a column and of its elements, and whether it may be absent."""

import types
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, Union, get_args, get_origin

from holdfast.entities.columns import Col
from holdfast.entities.types import COLUMN_KINDS, COLUMN_TYPES, ColumnType
from holdfast.errors import BadModel

_PLAIN: Final[dict[Any, ColumnType]] = {
    annotation: type for type in COLUMN_TYPES for annotation in COLUMN_KINDS[type].annotations
}


class Annotation(NamedTuple):
    """The meaning of an annotation. `type` is None when it has none: Any or object."""

    type: ColumnType | None
    subtype: ColumnType | None = None
    choices: tuple[Any, ...] = ()
    optional: bool = False


def read_annotation(annotation: Any, where: str) -> Annotation:
    """Returns the meaning of `annotation`, or raises `BadModel`.

    >>> read_annotation(set[str] | None, "User.groups")
    Annotation(type='Set', subtype='Text', choices=(), optional=True)
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Annotated, Col):
        return read_annotation(arguments[0], where)
    if origin in (Union, types.UnionType):
        rest = [argument for argument in arguments if argument is not type(None)]
        if len(rest) == 1:
            return read_annotation(rest[0], where)._replace(optional=True)
    if origin is Literal:
        return _literal(arguments, where)
    if annotation in (Any, object):
        return Annotation(None, optional=True)
    kind = _PLAIN.get(origin or annotation)
    if kind is None:
        known = ", ".join(known.__name__ for known in _PLAIN)
        raise BadModel(
            f"{where} is annotated as {annotation!r}, which no column can hold",
            hint=f"A column is one of {known}, a Literal, or one of these `| None`.",
        )
    if not arguments:
        return Annotation(kind)
    element = read_annotation(arguments[-1], where)
    return Annotation(kind, element.type, element.choices)


def _literal(values: tuple[Any, ...], where: str) -> Annotation:
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) != 1 or (kind := kinds.pop()) not in (str, int, bool, bytes):
        raise BadModel(f"the values of the Literal of {where} are of several types")
    choices = tuple(value for value in values if value is not None)
    return Annotation(_PLAIN[kind], choices=choices, optional=None in values)


def own_annotations(cls: type, names: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the annotations in the body of `cls` that are columns; `names` are the names that
    its author can use."""
    try:
        own = cls.__annotations__
    except NameError as error:  # from Python 3.14 on, annotations are read when they are asked for
        raise BadModel(f"the annotations of {cls.__name__}: {error}") from None
    found = {}
    for name, annotation in own.items():
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, dict(names))  # what Python itself would have done
            except Exception as error:
                where = f"{cls.__name__}.{name}"
                raise BadModel(f"the annotation {annotation!r} of {where}: {error}") from None
        if not name.startswith("_") and ClassVar not in (annotation, get_origin(annotation)):
            found[name] = annotation
    return found
