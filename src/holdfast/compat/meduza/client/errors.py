"""The errors of the public Meduza client.

MeduzaError
├── ColumnValueError    a column can't hold the value, or a required one has none
├── ModelError          an object that is not of a model
└── RequestError        what the server answered as `error`
"""

from holdfast.errors import HoldfastError


class MeduzaError(HoldfastError):
    """Anything that the mapper or the server refused."""

    code, status = "meduza", 400


class ColumnValueError(MeduzaError):
    """A column can't hold the value, or a required one has none."""

    code = "bad_value"


class ModelError(MeduzaError):
    """An object does not belong to a model."""

    code = "bad_model"


class RequestError(MeduzaError):
    """The server answered with an error; `reason` is its stable word, where there is one."""

    code = "request"

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason
