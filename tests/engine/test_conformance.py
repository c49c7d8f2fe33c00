"""Every engine is put through the conformance suite."""

import pytest

from tests.engine.conformance import Conformance
from tests.stores import Stores

pytestmark = pytest.mark.every_engine


class TestConformance(Conformance):
    @pytest.fixture
    def url(self, stores: Stores) -> str:
        return stores.url()
