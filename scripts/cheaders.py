"""Reads the public headers into a list of items, from which scripts/manual makes pages.

It reads the C of include/zarrc/ only: one declaration at a time, with a Doxygen comment before
it or after a member. It reads a macro only if the macro has a comment. An @name group becomes the `group` of its items.
"""
import re
from dataclasses import dataclass, field

from csource import ROOT, bare, line_number

TOKEN = re.compile(r"/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|[;{}]|[^;{}/#]+|.", re.S | re.M)
CPLUSPLUS = re.compile(r"^#ifdef __cplusplus\n.*?(?=^#(?:else|endif))", re.S | re.M)
NOISE = re.compile(r"\b(?:ZARR_API|ZARR_MUST_CHECK|ZARR_PLUGIN_EXPORT|static inline)\b\s*")


@dataclass
class Doc:
    """The parts of a comment: its paragraphs and its commands."""
    text: str = ""
    params: dict = field(default_factory=dict)
    errors: list = field(default_factory=list)  # (constant, sentence)
    returns: str = ""
    see: str = ""


@dataclass
class Member:
    type: str
    names: str  # with brackets and commas as they are written
    text: str
    callback: bool = False


@dataclass
class Item:
    kind: str  # function struct enum callback typedef opaque macro
    name: str
    doc: Doc
    header: str  # "zarrc/array.h"
    line: int
    group: object = None
    result: str = ""
    params: list = field(default_factory=list)  # (type with name, name)
    members: list = field(default_factory=list)
    code: str = ""


@dataclass
class Group:
    name: str
    doc: Doc


@dataclass
class Header:
    path: str
    doc: Doc
    items: list
    defines: set
    doc_main: str = ""  # of @mainpage: its title, then its text


def squeeze(text):
    return re.sub(r"\s+", " ", text).strip()


def comment_text(comment):
    """The text of a comment, without its delimiters."""
    body = re.sub(r"^/\*[*!]?<?|\*/$", "", comment)
    lines = [re.sub(r"^\s*\*(?: |$)", "", line).rstrip() for line in body.split("\n")]
    return "\n".join([lines[0].strip(), *lines[1:]]).strip("\n")


def read_doc(text):
    """Takes commands out of a comment's text. A command ends at a blank line or at the
    next command; what follows a blank line belongs to the description again."""
    doc, kept = Doc(), []
    parts = re.split(r"^@(param|return|retval|see)\s+", text, flags=re.M)
    kept.append(parts[0])
    for command, rest in zip(parts[1::2], parts[2::2]):
        said, _, more = rest.partition("\n\n")
        said = squeeze(said)
        kept.append(more)
        if command == "param":
            name, _, sentence = said.partition(" ")
            for one in name.split(","):
                doc.params[one] = sentence
        elif command == "retval":
            name, _, sentence = said.partition(" ")
            doc.errors.append((name, sentence))
        elif command == "return":
            doc.returns = said
        else:
            doc.see = f"{doc.see} {said}".strip()
    doc.text = "\n\n".join(k.strip("\n") for k in kept if k.strip())
    return doc


def split_top(text, mark=","):
    """The parts between marks that are outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == mark and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [squeeze(p) for p in [*parts, text[start:]] if p.strip()]


def read_param(text):
    text = squeeze(text)
    found = re.match(r".*?\(\s*\*\s*(\w+)\s*\)\s*\(", text) or re.match(
        r".*?(\w+)\s*(?:\[[^\]]*\])?$", text)
    return (text, "" if text in ("void", "...") else found.group(1))


def declarations(body):
    """(declaration, comment) of a struct's or enum's body; the comment stands in front
    of it or behind it on the same line."""
    rows, waiting, text = [], "", ""
    end = ";" if ";" in bare(body) else ","
    depth = 0
    for token in re.finditer(r"/\*.*?\*/|[();,]|[^();,/]+|.", body, re.S):
        token = token.group()
        if token.startswith("/**<"):
            comment = comment_text(token)
            if text.strip():  # the last constant of an enum has no comma
                rows.append([squeeze(text), comment])
                text = ""
            elif rows:
                rows[-1][1] = f"{rows[-1][1]}\n{comment}".strip()
        elif token.startswith("/**"):
            waiting = comment_text(token)
        elif token.startswith("/*"):
            continue
        else:
            depth += (token == "(") - (token == ")")
            if token == end and depth == 0:
                rows.append([squeeze(text), waiting])
                text, waiting = "", ""
            else:
                text += token
    if text.strip():
        rows.append([squeeze(text), waiting])
    return rows


def read_members(body):
    members = []
    for declaration, comment in declarations(body):
        declaration = squeeze(re.sub(r"ZARR_PRINTF\([^)]*\)", "", declaration))
        found = re.match(r"(.*?)\(\s*\*\s*(\w+)\s*\)\s*(\(.*\))$", declaration)
        if found:
            members.append(Member(declaration, found.group(2), comment, True))
            continue
        first = split_top(declaration)[0]
        found = re.match(r"(.*?[\s*])(\w+(?:\[[^\]]*\])*)$", first)
        names = declaration[len(found.group(1)):]
        members.append(Member(found.group(1).strip(), names, comment))
    return members


def read_declaration(text, doc, header, line):
    """One Item of a declaration without its `;`, or None for what is no part of the
    manual (a forward declaration)."""
    text = squeeze(re.sub(r"/\*.*?\*/", "", text, flags=re.S)) if "{" not in text else text
    plain = NOISE.sub("", text).strip()
    base = dict(doc=doc, header=header, line=line)
    if found := re.match(r"enum\s*\{(.*)\}$", plain, re.S):
        rows = [Member("", d.split("=")[0].strip(), c) for d, c in declarations(found.group(1))]
        return Item("enum", rows[0].names, members=rows, **base)
    if found := re.match(r"typedef struct (\w+)\s*\{(.*)\}\s*\w+$", plain, re.S):
        return Item("struct", found.group(1), members=read_members(found.group(2)), **base)
    plain = squeeze(re.sub(r"\{.*", "", plain, flags=re.S))
    if found := re.match(r"typedef struct (\w+) \w+$", plain):
        return Item("opaque", found.group(1), **base)
    if found := re.match(r"typedef (.*?)\(\s*\*\s*(\w+)\s*\)\s*\((.*)\)$", plain):
        return Item("callback", found.group(2), code=plain + ";", **base)
    if found := re.match(r"typedef (.*?)(\w+)$", plain):
        return Item("typedef", found.group(2), code=plain + ";", **base)
    if found := re.match(r"(.*?[\s*])(\w+)\((.*)\)$", plain):
        return Item("function", found.group(2), result=found.group(1).strip(),
                    params=[read_param(p) for p in split_top(found.group(3))], **base)
    if re.match(r"(?:struct \w+|ZARR_(?:BEGIN|END)_DECLS)$", plain):
        return None
    raise SystemExit(f"include/{header}:{line}: scripts/cheaders.py cannot read: {plain[:80]}")


def read_macro(text, doc, header, line):
    found = re.match(r"\s*#\s*define\s+(\w+)(\([^)]*\))?", text)
    if not found or not (doc.text or doc.params):
        return None
    return Item("macro", found.group(1), doc=doc, header=header, line=line,
                code=squeeze(text.replace("\\\n", " ").replace("#", "", 1).strip()))


def read_header(path):
    """One Header; path is relative to include/, as it is included."""
    whole = CPLUSPLUS.sub(lambda m: re.sub(r"[^\n]", "", m.group()),
                          (ROOT / "include" / path).read_text())
    defines = set(re.findall(r"^#[ \t]*define[ \t]+(\w+)", whole, re.M))
    header, doc, group = Header(path, Doc(), [], defines), Doc(), None
    text, depth, start = "", 0, 0
    for match in TOKEN.finditer(whole):
        token = match.group()
        if token.startswith("/**") and not token.startswith("/**<") and not depth:
            said = comment_text(token)
            if re.match(r"@file\b", said):
                header.doc = read_doc(re.sub(r"^@file\b.*\n?", "", said))
            elif said.startswith("@mainpage "):
                header.doc_main = said.removeprefix("@mainpage ")
            elif "@{" in said:
                title, _, rest = re.sub(r"@name\s+|@\{", "", said).strip().partition("\n")
                group = Group(title.strip(), read_doc(rest.strip("\n")))
            elif "@}" in said:
                group = None
            else:
                doc = read_doc(said)
                text = ""
        elif token.startswith("/*") and not depth:
            pass
        elif token.lstrip().startswith("#") and not depth:
            if item := read_macro(token, doc, path, line_number(whole, match.start())):
                item.group = group
                header.items.append(item)
                doc = Doc()
            text = ""
        else:
            depth += (token == "{") - (token == "}")
            if not text.strip():
                start = match.start()
            text = re.sub(r"^\s*ZARR_(?:BEGIN|END)_DECLS\s*", "", text + token)
            inline_end = token == "}" and not depth and "static inline" in text
            if (token == ";" and not depth) or inline_end:
                item = read_declaration(text.rstrip(";").strip(), doc, path, line_number(whole, start))
                if item:
                    item.group = group
                    header.items.append(item)
                text, doc = "", Doc()
    return header
