"""No message repeats a password, even if the URL of the store is not written as it should be."""

import pytest

import holdfast
from holdfast.engine import open_engine
from holdfast.engine.urls import without_password
from holdfast.errors import HoldfastError

PLACE = "ann:{}@127.0.0.1:1"
PASSWORDS = ["s3cret", "s3/cret", "s3?cret", "s3@cret", "s3/cret?s3", "s3?cret=s3", "s3/s3@cret"]


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("path", ["/0", ""])
@pytest.mark.parametrize("scheme", ["postgresql", "valkey"])
def test_an_error_repeats_no_part_of_a_password(scheme: str, password: str, path: str) -> None:
    url = f"{scheme}://{PLACE.format(password)}{path}"

    with pytest.raises(HoldfastError) as caught:
        open_engine(url)

    error: BaseException | None = caught.value
    while error is not None:
        assert ("s3" in f"{error}", "cret" in f"{error}") == (False, False)
        error = error.__cause__
    assert "s3" not in without_password(url)
    assert "cret" not in without_password(url)


@pytest.mark.parametrize("password", [*PASSWORDS[1:4], "s3#cret", "s3[cret", "12?s3cret"])
def test_nor_does_one_about_the_url_of_a_server(password: str) -> None:
    with pytest.raises(HoldfastError) as caught:
        holdfast.connect(f"holdfast://{PLACE.format(password)}", retries=0).jobs.get("a")

    assert ("s3" in f"{caught.value}", "cret" in f"{caught.value}") == (False, False)
