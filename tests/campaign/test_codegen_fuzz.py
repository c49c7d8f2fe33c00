"""The short form of the fuzz of generated code."""

from random import Random

from tests.campaign import codegen_fuzz


def test_no_text_of_a_schema_becomes_code_and_all_code_compiles() -> None:
    result = codegen_fuzz.run(Random(17), seconds=1)

    assert result.broken == []
    assert min(result.tried[each] for each in ("py files", "go files", "ts files")) >= 10
