"""The dashboard: web pages for everything in a store, served below `/ui/`.

It uses the same operations as every other client; README.md beside this file says how to add a
page. Importing the package adds its paths to the server.
"""

try:
    import jinja2 as _jinja2  # noqa: F401  # fails at once if it is not installed
except ImportError as _error:
    from holdfast.errors import MissingDriver

    raise MissingDriver.of_server(_error) from _error

from holdfast.dashboard import (  # noqa: F401  # importing a page registers it
    bulk,
    entities,
    entity,
    entity_schemas,
    events,
    failures,
    job,
    maintenance,
    metrics,
    overview,
    queue,
    queues,
    routes,  # registers /ui with the server
    rows,
    schedules,
    search,
    store_pages,
    tables,
    throttles,
    tracked,
    workers,
)
