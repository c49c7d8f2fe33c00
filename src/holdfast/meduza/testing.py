"""A throw-away server for tests: `from holdfast.meduza.testing import DisposableMeduza`."""

from holdfast.compat.meduza.client.testing import *  # noqa: F403
