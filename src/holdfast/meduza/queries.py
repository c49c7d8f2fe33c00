"""The queries of the public Meduza client: `from holdfast.meduza.queries import Filter`."""

from holdfast.compat.meduza.client.queries import *  # noqa: F403
