"""Schemaless objects with indexes, YAML schemas, typed models and generated code."""

from holdfast.entities.columns import Col, col, column, index, now
from holdfast.entities.layer import Entities
from holdfast.entities.models import Model, schema_yaml
from holdfast.entities.removal import REMOVERS
from holdfast.entities.statements import Page, select
from holdfast.entities.store import StoreEntities

__all__ = [
    "REMOVERS",
    "Col",
    "Entities",
    "Model",
    "Page",
    "StoreEntities",
    "col",
    "column",
    "index",
    "now",
    "schema_yaml",
    "select",
]
