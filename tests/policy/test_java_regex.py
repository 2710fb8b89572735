"""Java's regular expressions next to `java.util.regex` itself, in one JVM."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sparkmirror.demo.java import java
from sparkmirror.policy.java_regex import compile_java

NAMES = [
    "orders",
    "orders-dev",
    "orders-prod",
    "Orders",
    "ORDERS",
    "oRDERS",
    "us.orders",
    "topic1",
    "topic12",
    "topic1234",
    "a",
    "b",
    "c",
    "abc",
    "aab",
    "aaab",
    "x_y",
    "a.b-c_d",
    "k",
    "K",
    "-",
    "]",
    "é",
    "É",
    "straße",
    "групп",
    "a b",
    "a\u00a0b",
    "a\n",
    "a\r\n",
    "a\r\nb",
    "a\u0085",
    "\u212a",
    "\u0661",
    "\U0001f600",
    "ǅ",
    "{1}",
    "[[:alpha:]]",
    "",
]

TAKEN = r"""
.*
\b{2}.*
.*s\b{1,}.*
.\B{2}.*
orders|us\..*
.*(?<!-dev|-prod)
(?!.*-(dev|prod)$).*
.*(?<=-dev|-prod)
(?<!us\.).*
.*(?<!-(?:dev|pro.))
.*(?<!-d[a-z]{1,2})
.*(?<=or|s)ders
.*(?<!ers.*)
.*(?<!-(?:dev|prod).*)
.*(?<!-d.{0,9}|-prod)
.*(?<!a*|b+)
.*(?<=(?=a*b*)a*)
.*(?<=(?<=a*)b*)
.*(?<=a?b*)
.*(?<=b?aa*)
.*(?<=b?c?a+)
.*(?<=b?c?(?:a+|s+))
.*(?<=(?:a)?b)
topic\d{1,3}
topic[0-9]{2}
topic[0-9]{2,}
\p{Alpha}+
\p{Lower}+
\p{Upper}\p{Lower}*
\p{L}+
\pL+
\PL+
\p{Lu}\p{Ll}+
\p{IsL}+
\p{IsLatin}+
\p{IsCyrillic}+
\p{script=Cyrillic}+
\p{sc=Latin}+
\p{InCyrillic}+
\p{block=Cyrillic}+
\p{blk=Basic Latin}+
\p{general_category=Lu}.*
\p{gc=L}+
\p{IsAlphabetic}+
\p{IsUppercase}.*
\p{IsDigit}
\p{javaLowerCase}+
\p{javaUpperCase}.*
\p{javaLetterOrDigit}+
\p{javaWhitespace}|a b
\P{javaLetter}
\p{javaMirrored}
\p{L1}+
\p{LD}+
\p{LC}+
\p{all}+
\p{ASCII}+
\p{Punct}
\p{Graph}+
\p{Print}+
\p{XDigit}+
\p{Nd}
\p{IsPunctuation}
\P{Alpha}
[\p{Alpha}&&[^x]]+
[a-z&&[^bc]]+
[a-z&&[def]]+
[a-z&&def]+
[a&b]+
[a&b&&[^b]]+
[a-z&&[^&]]+
[a&b&&\&]+
[a-c&&b-d]
[a-z&&[^b]&&[^c]]+
[^a-c&&b-d]
[^a-c&&[b-d]]
[a[bc]]+
[a-c[x-z_]]+
[^a[bc]]+
[[^a]b]+
[a-c&&[^b]x]
[^\p{L}]
[\w&&[^_]]+
[\w.-]+
[a-]+
[-a]+
[]a-]+
[^]a]+
[\]\-]
[\w-]+
[\d-z]+
[a\-c]+
[[:alpha:]]+
[{}]1}
{1}
\{1}
\Qa.b\E-c_d
\Qa.b-c_d
[\Qabc\E]+
[\Qa-c\E]+
a\Qb\E+c
\Q\E
(?i)orders
(?i)ORDERS|us\.ORDERS
(?i:o)rders
(?i:O)rders
ord(?i)ERS
((?i)o)rders
((?i)O)rders
(?i)(?-i:O)rders
(?i-s)o.ders
(?i)k
(?iu)k
(?i)É
(?iu)É
(?i)[k]
(?iu)[k]
(?i)[a-z]+
(?i)[^a-z]
(?i)\p{Lower}+
(?i)\p{Upper}+
(?i)\p{Lu}+
(?i)\p{IsUppercase}+
(?i)\p{javaLowerCase}+
(?U)\w+
(?U)\d
(?U)\p{Alpha}+
(?U)\p{Lower}+
(?u)\w+
(?U)\b\p{L}+\b
(?x) ord ers # a comment
(?x)ord\ ers
(?x)[ a b ]
(?x:or d)ers
(?x)a #
(?s)a.
a.
(?d)a.
(?s)a..
(?m)a$
(?m)^
(?md)^
(?m)^a$.*
a$
a$\s
a\Z\s
a\z
a\Z
\Aa\z
\Ga
^orders$
(?d)a$\n
(?m)a$\r?\n^b
\w+
\W
\d
\D+
\s
a\sb
a\hb
a\Hb
a\v
a\v\v
a\R
a\Rb
a\V
\h*a\h*
\x61
\x{61}
\x{1F600}
\u0061
\uD83D\uDE00
\061
\0141
\0001|a
\cA|a
\t|a
\e|a
\a|a
\N{LATIN SMALL LETTER A}
\X
\X+
.
..
a*+b
a*+ab
a++b
(?>a+)b
(?>a|ab)c
(?>aa?)ab
a{1,2}+b
a{2}?b
a{1,3}?b
a?+ab
a*?b
(a)\1b
(a)(b)?\2c
(?<first>a)\k<first>b
(?<a1>[a-z])\k<a1>*b
(a)\11|aab
\1a
(\1a)|a
(?i)(a)\1b
(?=a)a
(?!b)[abc]
(?=.*b)aa.*
(?:)a
()a
a|
|a
a||b
\bus\b.*
us\b\.orders
\Borders
o\Brders
.*\B
-
\-
\.
\_
\
[\h]
[^\h]
[\v]
[\H&&a]
[\x61-\x63]+
[\u0061-c]+
[\061-\0143]+
[a-c&&[\p{L}&&[^b]]]+
(?:a|b)*+c
(?:(?:a)*)*b
^*a
$?a
(?:a{2}){2}|aab
x{0}a
a{0,1}b?
a{0,2147483647}
a{1000}
(?:a{100}){100}
""".strip("\n").split("\n")

REFUSED = r"""
*a
+
?a
a**
(a
a)
[a
[
a{2,1}
a{
a{x}
a{,3}
a{1
{
[b-a]
[a-\w]
\p{Nope}
\p{IsNope}
\p{InNope}
\p{sc=Nope}
\p
\p{L
\y
\q
[\b]
[\A]
\x
\x1
\x{110000}
\u12
\0
\08
\k<none>
\k
(?<a>a)(?<a>b)
(?<1a>a)
(?<a_b>a)
(?z)a
(?P<name>a)
(?
(?<
\c
\N{NOPE}
[[:alpha:]
topic[0-9]{1|3}
""".strip("\n").split("\n")


class Oracle:
    """One JVM that is asked again and again."""

    def __init__(self) -> None:
        command = [java(), str(Path(__file__).with_name("RegexOracle.java"))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(self, pattern: str, names: list[str]) -> list[str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("".join(f"{_hexadecimal(pattern)} {_hexadecimal(name)}\n" for name in names))
        self._process.stdin.flush()
        return [self._process.stdout.readline().strip() for _ in names]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


def _hexadecimal(text: str) -> str:
    return text.encode("utf-16-be", "surrogatepass").hex()


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    asked = Oracle()
    yield asked
    asked.close()


def ours(pattern: str, names: list[str]) -> list[str]:
    try:
        compiled = compile_java(pattern)
    except ValueError:
        return ["error" for _ in names]
    return ["true" if compiled.fullmatch(name) else "false" for name in names]


def is_misread_by_java(pattern: str) -> bool:
    try:
        compile_java(pattern)
    except ValueError as error:
        return any(words in str(error) for words in ("Java overlooks", "Java loses track"))
    return False


@pytest.mark.parametrize("pattern", TAKEN)
def test_what_java_takes_means_the_same(oracle: Oracle, pattern: str) -> None:
    told = oracle.ask(pattern, NAMES)
    assert dict(zip(NAMES, ours(pattern, NAMES), strict=True)) == dict(zip(NAMES, told, strict=True))


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_java_refuses_is_refused(oracle: Oracle, pattern: str) -> None:
    assert oracle.ask(pattern, ["a"]) == ["error"]
    with pytest.raises(ValueError, match=r"is no regular expression: .") as caught:
        compile_java(pattern)
    assert repr(pattern) in str(caught.value)
    assert "\n" not in str(caught.value)


ESCAPES = [r"\.", r"\-", r"\w", r"\D", r"\s", r"\p{Lower}", r"\P{L}", r"\p{IsLatin}", r"\h", r"\v", r"\R"]
MORE = [r"\Qa.\E", r"\x61", r"\061", r"\b", r"\B", r"\Z", r"\1"]
ATOMS = st.sampled_from([*"abcKk.-_ 1^$]}[){*#", *ESCAPES, *MORE])
ITEMS = st.sampled_from(
    [*"abcKxz1-]^&[.", "a-c", "B-K", "&&", r"\w", r"\p{Upper}", r"\P{Alpha}", r"\-", r"\x61-c", "[^b]"]
)
CLASSES = st.recursive(
    st.lists(ITEMS, min_size=1, max_size=4).map(lambda items: f"[{''.join(items)}]"),
    lambda inner: st.tuples(st.sampled_from(["", "^"]), inner, st.sampled_from(["", "&&", "a"]), inner).map(
        lambda parts: f"[{''.join(parts)}]"
    ),
    max_leaves=3,
)
QUANTIFIERS = st.sampled_from(
    ["", "", "", "?", "*", "+", "{2}", "{1,2}", "{1,}", "??", "*+", "++", "?+", "{1,2}+", "+?"]
)
FLAGS = st.sampled_from(["(?i)", "(?-i)", "(?s)", "(?m)", "(?x)", "(?U)", "(?u)", "(?iu)", "(?d)"])
STARTS = st.sampled_from(["(", "(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:", "(?x-i:"])


def _joined(parts: list[str]) -> str:
    return "".join(parts)


def _deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = st.tuples(STARTS, inner, st.sampled_from(["", "|"]), inner).map(lambda parts: f"{''.join(parts)})")
    return st.lists(st.one_of(st.tuples(group, QUANTIFIERS).map("".join), inner), max_size=3).map(_joined)


PARTS = st.one_of(st.tuples(st.one_of(ATOMS, CLASSES), QUANTIFIERS).map("".join), FLAGS)
PATTERNS = st.recursive(st.lists(PARTS, max_size=4).map(_joined), _deeper, max_leaves=4)
TEXTS = st.lists(st.text("abcKkxz1.-_ \n\ré]&^", max_size=4), min_size=8, max_size=8)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pattern=PATTERNS, texts=TEXTS)
def test_any_expression_means_the_same(oracle: Oracle, pattern: str, texts: list[str]) -> None:
    texts = [*texts, "", "a", "ab", "aab"]
    told, said = oracle.ask(pattern, texts), ours(pattern, texts)
    assume(not is_misread_by_java(pattern))
    # What Java refuses we may take: look-behind without an end, and texts at which its matcher itself fails.
    answers = list(zip(texts, told, said, strict=True))
    assert [one for one in answers if one[1] not in ("error", one[2])] == []


OVERLOOKED = r"""
a(?<=a*a*)
a(?<=b?c?d?e*a)
a(?<=b{0,2147483647}c?d?a)
baa(?<=b(?:a*)*+)
xcda(?<=x(?:b|cd+)a)
ac(?<=ab?(?:c|dd)a*)
a-dev-1(?<=-dev.*|-prod)
a-dev(?<=-dev.*|-prod.*)
a-d(?<=-(?:d|staging).*)
(?<=\R?a*)
xaa(?<=x(?:a*a*|b))
""".strip("\n").split("\n")


@pytest.mark.parametrize("pattern", OVERLOOKED)
def test_a_look_behind_whose_matches_java_overlooks_is_refused(oracle: Oracle, pattern: str) -> None:
    """The text in front of it matches in truth, and not in Java 17: a Java that finds it would let us take it."""
    text = pattern.partition("(")[0]
    assert oracle.ask(pattern, [text]) == ["false"]
    with pytest.raises(ValueError, match="Java overlooks matches of its look-behind") as caught:
        compile_java(pattern)
    assert pattern.removeprefix(text) in str(caught.value)


@pytest.mark.parametrize("pattern", ["[a&&&b]", "[a&&&&&b]", "[^a&&&b]", "[ab&&[b]&c]", "[a[b]&&]", "[a&&&]"])
def test_a_class_that_java_misreads_is_refused(oracle: Oracle, pattern: str) -> None:
    """Java takes characters that no reading of the class has."""
    assert "true" in oracle.ask(pattern, ["a", "b", "c"])
    with pytest.raises(ValueError, match="Java loses track of a class"):
        compile_java(pattern)


@pytest.mark.parametrize("pattern", ["a{2147483647}", "(?:(?:a{100}){100}){100}", "(" * 5000 + ")" * 5000])
def test_what_would_take_all_memory_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"repetitions are more than|nested too deeply"):
        compile_java(pattern)
