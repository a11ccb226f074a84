#!/usr/bin/env python3
"""The highlighters know every word of the language, and are well formed."""
import json
import re
import unittest

TEXTMATE = "editors/vscode/syntaxes/coll.tmLanguage.json"
VIM = "editors/vim/syntax/coll.vim"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def words_of_the_language():
    tokens = read("compiler/frontend/syntax/Token.def")
    words = re.findall(r'^OCCL_KEYWORD\(\w+, "(\w+)"\)', tokens, re.M) + re.findall(
        r'^OCCL_RESERVED\("(\w+)"\)', tokens, re.M)
    assert len(words) > 20, "Token.def has another form than this test expects"
    return words


def patterns(rule):
    yield from (rule[key] for key in ("match", "begin", "end") if key in rule)
    for inner in rule.get("patterns", []):
        yield from patterns(inner)


class WordsTest(unittest.TestCase):
    def test_textmate(self):
        grammar = json.loads(read(TEXTMATE))
        rules = [grammar, *grammar["repository"].values()]
        expressions = [re.compile(pattern) for rule in rules for pattern in patterns(rule)]
        for word in words_of_the_language():
            # Behind a blank and before a bracket, as functions are.
            self.assertTrue(any(e.search(f" {word}(").group(0) == word for e in expressions
                                if e.search(f" {word}(") and word in e.pattern), word)

    def test_vim(self):
        known = set(re.findall(r"\w+", " ".join(re.findall(r"^syntax keyword \w+ (.*)$", read(VIM), re.M))))
        self.assertEqual(set(words_of_the_language()) - known, set())

    def test_vscode(self):
        package = json.loads(read("editors/vscode/package.json"))
        json.loads(read("editors/vscode/language-configuration.json"))
        self.assertEqual(package["contributes"]["languages"][0]["extensions"], [".coll"])


if __name__ == "__main__":
    unittest.main()
