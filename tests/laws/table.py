"""The table of all rules: the test or proof of each, and how often it fires there. `python -m tests.laws.table`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import tinyexplore
from tests.laws import function_rules, kernel_rules, test_function_rules, test_general_proofs, test_kernel_rules
from tests.laws import test_laws as arithmetic_rules
from tinyexplore.codegen import PASSES, Rewrite
from tinyexplore.uop import Rule
from tinyexplore.uop.algebra import SIMPLIFY
from tinyexplore.uop.folding import FOLDING


@dataclass(frozen=True)
class Row:
    """A rule and what is known of it. `law`: where it is tried; "" for none. is_proved: by z3, for all constants."""

    rule: Rule
    tables: tuple[str, ...]
    law: str
    is_proved: bool

    def firings(self) -> int:
        """How often it fires where its law is tried; AssertionError where that is false."""
        match self.law:
            case "pieces of kernels":
                return test_kernel_rules.firings(self.rule, kernel_rules.LAWS[self.rule])
            case "error of a function":
                random = Random(self.rule.name)
                wanted = test_function_rules.FIRINGS
                return sum(function_rules.function_law(self.rule, random) for _ in range(wanted))
            case "values of expressions":
                (context,) = [c for matcher, c in arithmetic_rules.TABLES.values() if self.rule in matcher.rules]
                arithmetic_rules.test_a_rule_preserves_value_and_type(self.rule, context)
                return arithmetic_rules.FIRINGS
        return 0


def rows() -> list[Row]:
    """All rules of all tables."""
    tables = {step.name: step.table for step in PASSES if isinstance(step, Rewrite)}
    tables |= {"simplify": SIMPLIFY, **tables, "known results": FOLDING}
    named: dict[Rule, list[str]] = {}
    for name, matcher in tables.items():
        for rule in matcher.rules:
            named.setdefault(rule, []).append(name)
    return [Row(rule, tuple(names), law_of(rule), rule in test_general_proofs.PROVED) for rule, names in named.items()]


def law_of(rule: Rule) -> str:
    if rule in kernel_rules.LAWS:
        return "pieces of kernels"
    if rule in function_rules.RULES:
        return "error of a function"
    if any(rule in matcher.rules for matcher, _ in arithmetic_rules.TABLES.values()):
        return "values of expressions"
    return ""


def written_rules() -> Iterator[str]:
    """The names of the rules in the package's source, whatever table they are in."""
    for path in sorted(Path(tinyexplore.__file__).parent.rglob("*.py")):
        text = path.read_text("utf-8")
        if "@rule(" not in text and "law(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                calls = [one for one in node.decorator_list if isinstance(one, ast.Call)]
                if any(isinstance(one.func, ast.Name) and one.func.id == "rule" for one in calls):
                    yield node.name
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "law":
                name = node.args[0]
                if isinstance(name, ast.Constant):
                    yield str(name.value)


def table() -> str:
    """One line for each rule, as Markdown."""
    lines = ["| rule | tables | law | firings | proof |", "|---|---|---|---|---|"]
    for row in rows():
        proof = "z3, all constants" if row.is_proved else ""
        lines.append(f"| {row.rule.name} | {', '.join(row.tables)} | {row.law} | {row.firings()} | {proof} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
