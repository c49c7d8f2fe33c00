"""The public Meduza client's API under the name that old programs import.

The code is `holdfast.compat.meduza.client`; this package only gives it a short name.
"""

from holdfast.compat.meduza.client import *  # noqa: F403
