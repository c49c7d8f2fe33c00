"""Connections to other packages, each loaded when it is imported and with its own extra.

`contrib.fastapi`, `contrib.starlette` and `contrib.flask` have a store for a web application,
`contrib.django` for a Django project;
`contrib.opentelemetry` traces the runs of tasks, `contrib.sentry` reports their exceptions.
"""
