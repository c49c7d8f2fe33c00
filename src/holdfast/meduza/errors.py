"""The errors of the public Meduza client: `from holdfast.meduza.errors import MeduzaError`."""

from holdfast.compat.meduza.client.errors import *  # noqa: F403
