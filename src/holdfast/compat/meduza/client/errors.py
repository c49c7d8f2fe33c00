"""The errors of the public Meduza client.

MeduzaError
├── ColumnValueError    a column can't hold the value, or a required one has none
├── ModelError          an object does not belong to a model
└── RequestError        the server answered with an error
"""

from holdfast.errors import HoldfastError


class MeduzaError(HoldfastError):
    """The mapper or the server refused something."""

    code, status = "meduza", 400


class ColumnValueError(MeduzaError):
    """A column can't hold the value, or a required one has none."""

    code = "bad_value"


class ModelError(MeduzaError):
    """An object does not belong to a model."""

    code = "bad_model"


class RequestError(MeduzaError):
    """The server answered with an error; `reason` is its stable code, if it has one."""

    code = "request"

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason
