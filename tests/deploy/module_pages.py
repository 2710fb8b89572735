"""The tables in the README of each Terraform module, in terraform-docs' layout.

`python -m tests.deploy.module_pages` writes them again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.deploy.terraform import MODULE

MODULES = MODULE / "modules"
PUBLIC = ("mirror", "monitoring", "msk", "repositories")
BEGIN, END = "<!-- BEGIN_TF_DOCS -->", "<!-- END_TF_DOCS -->"
_MULTI_LINE = "<pre>{}</pre>"


def page(module: Path) -> str:
    """Return the README's text with its tables as the module's files have them."""
    readme = (module / "README.md").read_text()
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables(module)}{END}{after}"


def tables(module: Path) -> str:
    """Return requirements, modules, resources, inputs and outputs of a module, as Markdown."""
    text = "\n".join(file.read_text() for file in sorted(module.glob("*.tf")))
    required = re.findall(r'^  required_version = "(.+)"|^      version = "(.+)"', text, re.M)
    (terraform, _), (_, provider) = required
    sections = [
        ("Requirements", ("Name", "Version"), [("terraform", terraform), ("aws", provider)]),
        ("Modules", ("Name", "Source"), re.findall(r'^module "(\w+)" \{\n  source += "([^"]+)"', text, re.M)),
        ("Resources", ("Name", "Type"), _resources(text)),
        ("Inputs", ("Name", "Description", "Type", "Default", "Required"), _inputs(text)),
        ("Outputs", ("Name", "Description"), _outputs(text)),
    ]
    return "\n".join(_table(title, heads, rows) for title, heads, rows in sections)


def _table(title: str, heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return f"## {title}\n\nNo {title.lower()}.\n"
    lines = [heads, tuple("------" for _ in heads), *sorted(rows)]
    return f"## {title}\n\n" + "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _blocks(kind: str, text: str) -> Iterator[tuple[str, str]]:
    yield from re.findall(rf'^{kind} "(\w+)" \{{\n(.*?)^\}}', text, re.M | re.S)


def _resources(text: str) -> list[tuple[str, ...]]:
    told = re.findall(r'^(resource|data) "(\w+)" "(\w+)"', text, re.M)
    return [(f"{kind}.{name}", "resource" if block == "resource" else "data source") for block, kind, name in told]


def _inputs(text: str) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, body in _blocks("variable", text):
        default = _value("default", body)
        cells = (name, _description(body), _code(_value("type", body) or "any"), _code(default or "n/a"))
        rows.append((*cells, "yes" if default is None else "no"))
    return rows


def _outputs(text: str) -> list[tuple[str, ...]]:
    return [(name, _description(body)) for name, body in _blocks("output", text)]


def _description(body: str) -> str:
    told = re.search(r'^  description += "(.*)"$', body, re.M)
    assert told is not None, body
    return told[1].replace("$${", "${").replace("|", "\\|")


def _value(name: str, body: str) -> str | None:
    """What an argument is set to; over several lines where brackets say so."""
    told = re.search(rf"^  {name} += (.*?(?:[({{\[]\n.*?^  [)}}\]]+)?)$", body, re.M | re.S)
    return None if told is None else told[1]


def _code(value: str) -> str:
    if "\n" not in value:
        return f"`{value}`"
    return _MULTI_LINE.format("<br>".join(line.removeprefix("  ") for line in value.split("\n")))


def main() -> None:
    """Write them all."""
    for name in PUBLIC:
        text = page(MODULES / name)
        (MODULES / name / "README.md").write_text(text)


if __name__ == "__main__":
    main()
