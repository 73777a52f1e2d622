"""Words are normalised and in order; what technical text writes as one token stays one."""

from __future__ import annotations

import pytest

from askalike.text.tokens import parts, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, World!", ["hello", "world"]),
        ("(see: this)...", ["see", "this"]),
        ("", []),
        ("... -- ' _ ~ //", []),
        # versions, numbers, codes
        ("Ubuntu 22.04, kernel 5.15.0-91.", ["ubuntu", "22.04", "kernel", "5.15.0-91"]),
        ("v1.2.3-rc1 0.5", ["v1.2.3-rc1", "0.5"]),
        ("1,000 or 1,234.56", ["1000", "or", "1234.56"]),
        ("0x80070035 E1234 SIGSEGV HTTP-404", ["0x80070035", "e1234", "sigsegv", "http-404"]),
        ("10:30 50% $5", ["10", "30", "50", "5"]),
        # languages and file names
        ("C++ c++17 C# .NET asp.net node.js", ["c++", "c++17", "c#", ".net", "asp.net", "node.js"]),
        ("edit .bashrc and resolv.conf.", ["edit", ".bashrc", "and", "resolv.conf"]),
        # paths
        ("in /etc/resolv.conf, ~/.ssh/ ./run.sh", ["in", "/etc/resolv.conf", "~/.ssh", "./run.sh"]),
        (r"C:\Windows\System32 \\nas\share %APPDATA%\x", [r"c:\windows\system32", r"\\nas\share", r"%appdata%\x"]),
        ("and/or TCP/IP", ["and", "or", "tcp", "ip"]),
        # addresses
        ("(https://example.org/a?b=1).", ["https://example.org/a?b=1"]),
        ("www.example.org/, me@example.org!", ["www.example.org", "me@example.org"]),
        # apostrophes and hyphens
        ("don’t 'quoted' users'", ["don't", "quoted", "users"]),
        ("wi-fi long–term 20-year-old", ["wi", "fi", "long", "term", "20-year-old"]),
        ("U.S.A. e.g. this", ["usa", "eg", "this"]),
        ("__init__ max_size _x_", ["init", "max_size", "x"]),
        (r"\sqrt{2} $n$", ["sqrt", "2", "n"]),
        # scripts
        ("Straße CAFÉ ﬁne İstanbul", ["strasse", "café", "fine", "istanbul"]),
        ("हिन्दी में कैसे", ["हिन्दी", "में", "कैसे"]),
        ("日本語テスト 한국어", ["日", "本", "語", "テスト", "한국어"]),
        ("㊀'㐀 日-本", ["一", "㐀", "日", "本"]),
        ("שלום \u200fעולם", ["שלום", "עולם"]),
        # what must not get in the way
        ("zero\u200bwidth soft\u00adhyphen", ["zerowidth", "softhyphen"]),
        ("fine 😀👍🏽 1️⃣", ["fine", "1"]),
        ("a\x00b \ud800c\udfff", ["a", "b", "c"]),
        ("cafe\u0301", ["café"]),
    ],
)
def test_words_of(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_a_word_may_stand_at_any_white_space() -> None:
    assert words("a\u00a0b\u2028c\td\r\ne") == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("/etc/resolv.conf", ["etc", "resolv.conf", "resolv", "conf"]),
        ("https://www.example.org/a-guide", ["example.org", "example", "org", "a-guide", "a", "guide"]),
        ("me@example.org", ["me", "example.org", "example", "org"]),
        ("5.15.0-91", ["5.15.0", "91"]),
        ("v22.04", ["22.04"]),
        ("22.04", []),
        ("c++", []),
        ("c++17", ["c++"]),
        ("c#", []),
        (".net", ["net"]),
        ("max_size", ["max", "size"]),
        (r"c:\windows\a.dll", ["c", "windows", "a.dll", "a", "dll"]),
    ],
)
def test_parts_of(word: str, expected: list[str]) -> None:
    assert parts(word) == expected
