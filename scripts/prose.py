"""prose - the sentences and paragraphs of a Markdown page, for scripts/check-docs, and the sentences of a comment,
for scripts/check-headers.

Headings, tables, code, quotations and comments are left out. An item of a list is a paragraph. A sentence
ends with a full stop, a question mark or an exclamation mark before a blank. A code span is one word."""
import re
import textwrap

MOST_WORDS, MOST_LINES, COLUMNS = 30, 6, 100
MOST_ROWS, MOST_MEANING = 35, 20  # of the glossary
COMMENT = re.compile(r"<!--.*?-->", re.S)
FENCED = re.compile(r"^ *```.*?^ *```[^\n]*$", re.S | re.M)
APART = re.compile(r" *(?:\||#|>|!\[|---|:::|={3,}|\[[^\]]+\]: )")
ITEM = re.compile(r" *(?:[-*+]|\d+\.) +")
END = re.compile(r"(?<=[.?!])[\"')*_]*\s+")


def blank(match):
    return "\n" * match.group().count("\n")


def paragraphs(text):
    """(line, text) of each paragraph."""
    text = FENCED.sub(blank, COMMENT.sub(blank, text))
    first, words = 0, []
    for number, line in enumerate([*text.split("\n"), ""], 1):
        begins = ITEM.match(line)
        is_apart = not line.strip() or APART.match(line) or line.startswith("    ") and not words
        if words and (is_apart or begins):
            yield first, " ".join(words)
            words = []
        if not is_apart:
            first = first if words else number
            words.append((line[begins.end():] if begins else line).strip())


def sentences(paragraph):
    """The sentences of a paragraph, with one word in the place of each code span and link target."""
    text = re.sub(r"`[^`]+`", "code", paragraph)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return END.split(text)


def measure(text):
    """(line, lines of the paragraph, words of its longest sentence, that sentence) of each paragraph."""
    for line, paragraph in paragraphs(text):
        words = {sentence: len(re.findall(r"\S*\w\S*", sentence)) for sentence in sentences(paragraph)}
        longest = max(words, key=words.get)
        yield line, len(textwrap.wrap(paragraph, COLUMNS)), words[longest], longest


def faults(text):
    """(line, what) of each paragraph that is too long, or has a sentence that is."""
    for line, n_lines, n_words, sentence in measure(text):
        if n_lines > MOST_LINES:
            yield line, f"a paragraph of {n_lines} lines of {COLUMNS} columns: split it, {MOST_LINES} at most"
        if n_words > MOST_WORDS:
            yield line, f"a sentence of {n_words} words, {MOST_WORDS} at most: {sentence[:60]}..."


def comment_faults(text):
    """What is too long in a Doxygen comment. Conditions of an error, after @retval, are a list, which may be longer."""
    text = re.sub(r"^@retval\s.*?(?=^@|^$|\Z)", "", text, flags=re.S | re.M)
    text = re.sub(r"^@(?:file|name)\b.*|^@[{}]", "", text, flags=re.M)
    text = re.sub(r"^@(?:param\s+\S+|return|see|mainpage)\s+", "\n\n", text, flags=re.M)
    for _, _, n_words, sentence in measure(text):
        if n_words > MOST_WORDS:
            yield f"a sentence of {n_words} words, {MOST_WORDS} at most: {sentence[:60]}..."


def glossary(text):
    """(line, words of the meaning) of each row of the glossary."""
    before = text.partition("## Glossary\n")[0].count("\n")
    rows = [(number, line) for number, line in enumerate(text.split("\n"), 1) if number > before and line.startswith("| ")][1:]
    return [(number, len(line.split("|")[2].split())) for number, line in rows]


def glossary_faults(text):
    """(line, what) of each row of the glossary that is too long, and of the table."""
    rows = glossary(text)
    if len(rows) > MOST_ROWS:
        yield rows[0][0], f"a glossary of {len(rows)} rows, {MOST_ROWS} at most"
    for number, n_words in rows:
        if n_words > MOST_MEANING:
            yield number, f"a meaning of {n_words} words, {MOST_MEANING} at most"
