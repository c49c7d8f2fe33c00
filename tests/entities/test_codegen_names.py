"""Names in generated code: none clashes with another, or with one that the code itself uses."""

import ast

import pytest

from holdfast import meduza
from holdfast.entities import Model
from holdfast.entities.codegen import Options, Style, generate
from holdfast.entities.codegen.names import NamingRules
from holdfast.entities.schema import Column
from holdfast.entities.schema_file import parse_schema
from holdfast.errors import InvalidEntitySchema
from tests.entities.test_codegen import STYLES, everything


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        (
            "{A: {class: X}, B: {class: X}}",
            "Tables s.A and s.B have one class name: X",
        ),
        (
            "{A: {columns: {x: {type: Int, clientName: z}, y: {type: Int, clientName: z}}}}",
            "Columns x and y of table A have one attribute name: z",
        ),
        ("{A: {class: a-b}}", "The class 'a-b' of table A can't be a name in code"),
        (
            "{A: {columns: {x: {type: Int, clientName: 1st}}}}",
            "The clientName '1st' can't be a name in code",
        ),
    ],
)
def test_names_that_clash_are_refused(tables: str, problem: str) -> None:
    with pytest.raises(InvalidEntitySchema) as caught:
        generate([parse_schema(f"schema: s\ntables: {tables}")], "py")

    assert caught.value.problems == (problem,)


def test_tables_of_one_name_in_two_schemas_are_told_apart_in_go() -> None:
    text = "schema: {0}\ntables: {{T: {{class: {0}T}}}}"
    source = generate([parse_schema(text.format(name)) for name in ("a", "b")], "go")

    assert 'const Table_a_T = "T"' in source
    assert 'const Table_b_T = "T"' in source


def test_names_that_clash_in_go_alone_are_refused_there() -> None:
    schema = parse_schema("schema: s\ntables: {Thing: {}, NewThing: {}}")

    generate([schema], "py")
    with pytest.raises(InvalidEntitySchema, match="are both called NewThing in Go"):
        generate([schema], "go")


def test_names_of_the_clients_are_never_those_of_a_table() -> None:
    schema = parse_schema("schema: s\ntables: {HoldfastClient: {}, HoldfastError: {}}")

    assert "type HoldfastClient_ struct" in generate([schema], "go")
    assert "export interface HoldfastError_ {" in generate([schema], "ts")


def test_what_every_model_has_is_never_the_name_of_a_column() -> None:
    for style, model in (("modern", Model), ("classic", meduza.Model)):
        names = NamingRules.of("py", style)
        for name in (each for each in dir(model) if not each.startswith("_")):
            assert names.attribute(Column(name=name, type="Text")) == f"{name}_"


@pytest.mark.parametrize("style", STYLES)
def test_what_the_code_of_a_model_uses_is_never_the_name_of_a_column(style: Style) -> None:
    columns = "a: {type: Float, default: .inf}, b: {type: Set, subtype: Text, default: []}"
    schemas = [*everything(), parse_schema(f"schema: s\ntables: {{T: {{columns: {{{columns}}}}}}}")]
    names = NamingRules.of("py", style)
    tree = ast.parse(generate(schemas, "py", Options(style=style)))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    own = {node.id for node in found if isinstance(node.ctx, ast.Store)}  # such as aliases
    used = {node.id for node in found} - own

    assert {"float", "set"} <= used
    for name in used:
        assert names.attribute(Column(name=name, type="Text")) == f"{name}_"
