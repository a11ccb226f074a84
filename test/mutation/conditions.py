"""Finds the conditions of C++ sources, and what breaks each: it, or a part of it, is always true or always false.

Conditions are those of `if` and `?:`, what a function returns and what a bool is set to, as far as the text shows that
they are conditions. Of `a || b` each operand is broken to false in turn, and the whole to true; of `a && b` each operand to true,
and the whole to false; what has no parts, both ways. Loops are not broken: they would not end.
"""
import re
from collections import namedtuple

# `text` is the condition or a part of it, at [begin, end) of the source; `value` what it is broken to. A declaration
# (`if (Finding finding = check())`) keeps its value, and `name` is tested as well.
Break = namedtuple("Break", "begin end text value name")

_HIDDEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#[^\n]*', re.S | re.M)
_DECLARATION = re.compile(r"^(?:const\s+)?[A-Za-z_][\w:<>, ]*[\s*&]+(\w+)\s*=(?!=)")
_COMPARISON = re.compile(r"[=!<>]=|(?<=\s)[<>](?=\s)|^!")
_TAIL_STOPS = {"=", ",", ";", "return", "?", ":", "(", "[", "{", "<<"}
_PAIRS = {"(": ")", "[": "]", "{": "}"}


def hide(text):
    """The text with comments, literals and preprocessor lines blanked."""
    def blank(match):
        inside = match.group()
        if inside[0] in "\"'":  # a literal stays a value
            return inside[0] + "_" * (len(inside) - 2) + inside[0]
        return re.sub(r"[^\n]", " ", inside)
    return _HIDDEN.sub(blank, text)


class Source:
    """Finds the breaks of one source."""

    def __init__(self, text):
        self.text, self.code, self.breaks = text, hide(text), []

    def all_breaks(self):
        for match in re.finditer(r"\bif \(", self.code):
            begin = match.end()
            self.condition(begin, self.closing(begin - 1))
        for match in re.finditer(r"\breturn\s", self.code):
            self.value(match.end(), self.stop(match.end(), ";"))
        for match in re.finditer(r"(?:\bbool \w+ =|\w+ [&|]=|\bpossible =)\s", self.code):
            self.value(match.end(), self.stop(match.end(), ";,"), sure=True)
        for match in re.finditer(r"\s\?\s", self.code):
            self.ternary(match.start())
        unique = {(b.begin, b.end, b.value): b for b in self.breaks}
        return [unique[key] for key in sorted(unique)]

    def closing(self, opening):
        """Where the bracket at `opening` is closed."""
        depth = 0
        for at in range(opening, len(self.code)):
            depth += (self.code[at] in "([{") - (self.code[at] in ")]}")
            if depth == 0:
                return at
        raise ValueError("a bracket is not closed")

    def stop(self, begin, stops):
        """The first of `stops` outside of brackets, or the end of what is around."""
        at = begin
        while at < len(self.code):
            if self.code[at] in _PAIRS:
                at = self.closing(at)
            elif self.code[at] in stops or self.code[at] in ")]}":
                return at
            at += 1
        raise ValueError("an expression has no end")

    def trim(self, begin, end):
        while begin < end and self.code[begin].isspace():
            begin += 1
        while begin < end and self.code[end - 1].isspace():
            end -= 1
        return begin, end

    def split(self, begin, end, operator):
        """The operands of `operator` outside of brackets."""
        parts, at, first = [], begin, begin
        while at < end:
            if self.code[at] in _PAIRS:
                at = self.closing(at)
            elif self.code.startswith(operator, at):
                parts.append((first, at))
                at += len(operator) - 1
                first = at + 1
            at += 1
        return parts + [(first, end)]

    def condition(self, begin, end):
        begin = self.split(begin, end, ";")[-1][0]
        begin, end = self.trim(begin, end)
        declaration = _DECLARATION.match(self.code[begin:end])
        if declaration:
            self.add(begin, end, False, declaration.group(1))
        elif not self.code[begin:end].startswith("auto ["):
            self.decompose(begin, end)

    def value(self, begin, end, sure=False):
        """Of a returned or assigned value, if it is a condition."""
        if len(self.split(begin, end, " ? ")) > 1:
            return
        begin, end = self.trim(begin, end)
        outside = self.outside(begin, end)
        if sure and outside not in ("true", "false") or "&&" in outside or "||" in outside or _COMPARISON.search(outside) and \
           "<<" not in outside and "<=>" not in outside:
            self.decompose(begin, end)

    def outside(self, begin, end):
        """The code without what is in brackets."""
        text, at = "", begin
        while at < end:
            text += self.code[at]
            if self.code[at] in _PAIRS:
                at = self.closing(at)
            at += 1
        return text

    def ternary(self, question):
        """The condition before a question mark: back to what binds less."""
        depth, at = 0, question
        while at > 0:
            at -= 1
            c = self.code[at]
            if c in ")]}":
                depth += 1
            elif c in "([{":
                if depth == 0:
                    break
                depth -= 1
            elif depth == 0 and (c in ",;?:" and "::" not in (self.code[at:at + 2], self.code[at - 1:at + 1]) or
                                 c == "=" and self.code[at - 1] not in "=!<>" and self.code[at + 1] != "=" or
                                 re.match(r"\breturn\s", self.code[at - 6:at + 1])):
                break
        self.decompose(at + 1, question)

    def decompose(self, begin, end):
        begin, end = self.trim(begin, end)
        while self.code[begin] == "(" and self.closing(begin) == end - 1:
            begin, end = self.trim(begin + 1, end - 1)
        for operator, neutral in (("||", False), ("&&", True)):
            parts = self.split(begin, end, operator)
            if len(parts) > 1:
                self.add(begin, end, not neutral)
                for part in parts:
                    self.operand(*part, neutral)
                return
        self.add(begin, end, False)
        self.add(begin, end, True)

    def operand(self, begin, end, neutral):
        begin, end = self.trim(begin, end)
        inner = (begin, end)
        while self.code[inner[0]] == "(" and self.closing(inner[0]) == inner[1] - 1:
            inner = self.trim(inner[0] + 1, inner[1] - 1)
        if any(len(self.split(*inner, operator)) > 1 for operator in ("||", "&&")):
            self.decompose(*inner)
        self.add(begin, end, neutral)

    def add(self, begin, end, value, name=None):
        begin, end = self.trim(begin, end)
        text = re.sub(r"\s+", " ", re.sub(r"//[^\n]*", "", self.text[begin:end]))
        self.breaks.append(Break(begin, end, text, value, name))


def breaks_of(text):
    return Source(text).all_breaks()
