"""Fixtures of the tests of entities: a store with a few tables."""

import pytest

from holdfast.entities import StoreEntities
from holdfast.store import Store

SCHEMA = """
schema: test
tables:
  Users:
    columns:
      name: {type: Text}
      lastName: {type: Text}
      age: {type: Int}
      city: {type: Text}
    indexes:
      - {type: compound, columns: [name, lastName]}
      - {type: simple, columns: [age]}
      - {type: compound, columns: [city, age]}
  Keyed:
    primary: {type: compound, columns: [name, lastName]}
    columns:
      name: {type: Text}
      lastName: {type: Text}
      score: {type: Int}
    indexes:
      - {type: simple, columns: [score]}
  Hashed:
    primary: {type: compound, columns: [name, lastName], options: {hashed: true}}
    columns:
      name: {type: Text}
      lastName: {type: Text}
  Plain:
"""


@pytest.fixture
def entities(store: Store) -> StoreEntities:
    """The entities of an empty store in which `SCHEMA` is deployed."""
    store.entities.deploy(SCHEMA)
    return store.entities
