"""The columns of the public Meduza client: `from holdfast.meduza.columns import Int, Text`."""

from holdfast.compat.meduza.client.columns import *  # noqa: F403
