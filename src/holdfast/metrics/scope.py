"""The scope of a call: its prefix and its namespace, which an object can bind for all its calls."""

from typing import Any, Final, NamedTuple

from holdfast.metrics.entity import Prefix, as_namespace, as_prefix

PREFIX: Final = "WRStats"
NAMESPACE: Final = "local"


class MetricsScope(NamedTuple):
    """The prefix and the namespace of calls that give none of their own."""

    prefix: Prefix = PREFIX
    namespace: str = NAMESPACE

    def fill(self, prefix: Prefix, namespace: str) -> tuple[Prefix, str]:
        """Returns the arguments of a call; those that are the defaults come from this scope.

        >>> MetricsScope("app", "web").fill("WRStats", "api")
        ('app', 'api')
        """
        return (
            self.prefix if prefix == PREFIX else prefix,
            self.namespace if namespace == NAMESPACE else namespace,
        )

    def narrowed(self, prefix: Prefix, namespace: str) -> "MetricsScope":
        """Returns the scope with another prefix, another namespace or both; checks them."""
        prefix, namespace = self.fill(prefix, namespace)
        if not isinstance(prefix, str):  # which is checked already, and makes calls cheaper
            prefix = as_prefix(prefix)
        return MetricsScope(prefix, as_namespace(namespace))

    def arguments(self, prefix: Prefix, namespace: str) -> dict[str, Any]:
        """Returns the checked arguments of a writer, reader or limiter in this scope."""
        prefix, namespace = self.fill(prefix, namespace)
        return {"prefix": as_prefix(prefix), "namespace": as_namespace(namespace)}


UNSCOPED: Final = MetricsScope()
