"""Converts the text of header comments to mdoc(7): paragraphs, lists, code, and names in text."""
import re
import textwrap

SYSTEM = {"fork": 2, "malloc": 3, "snprintf": 3}
SPECIAL = re.compile(r"`(?P<code>[^`]+)`|\b(?P<call>\w+)\(\)|\b(?P<constant>ZARR_[A-Z0-9_]+\*?|NULL"
                     r"|[A-Z0-9]+_M(?:AX|IN)\b)|\b(?P<type>zarr_\w+(?:\.\w+)?)\b")
NO_END = ("e.g.", "i.e.", "etc.")


def ascii_only(text):
    return re.sub(r"[^\x00-\x7f]", lambda m: f"\\[u{ord(m.group()):04X}]", text)


def escape(text):
    """For a text line."""
    for char, name in (("\\", "\\e"), ("^", "\\(ha"), ("~", "\\(ti"), ("`", "\\(ga")):
        text = text.replace(char, name)
    text = ascii_only(text)
    return "\\&" + text if text[:1] in (".", "'") else text


def literal(text):
    """For a line of code."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    for char, name in (("^", "\\(ha"), ("~", "\\(ti"), ("`", "\\(ga")):
        text = text.replace(char, name)
    text = ascii_only(text)
    return "\\&" + text if text.startswith(".") else text


def argument(text):
    """For an argument of a macro, in quotes where it needs them."""
    text = text.replace("\\", "\\e").replace('"', "\\(dq")
    if re.fullmatch(r"[A-Z%][A-Za-z0-9]", text) or text in tuple("|.,:;()[]?!"):
        text = "\\&" + text  # else mandoc takes it for a macro or a delimiter
    return f'"{text}"' if " " in text or not text else text


def sentence(text):
    """Turns the phrase behind a member into a sentence."""
    text = text.strip()
    if text[:1].islower() and not re.match(r"\w*[_(.]|v[23]\b", text):
        text = text[0].upper() + text[1:]
    return text + ("" if re.search(r"[.:!?]$", text) else ".")


class Writer:
    """Collects the lines of a page. `own` are the names of functions on the page, `words`
    its parameters and members; `find_page` gives the page of a name, or None."""

    def __init__(self, own, words, find_page, problem):
        self.lines = []
        self.own, self.words = set(own), set(words)
        self.find_page, self.problem = find_page, problem
        self.linked = set()

    def macro(self, name, *arguments, tail=()):
        self.lines.append(" ".join([f".{name}", *map(argument, arguments), *tail]))

    def section(self, title):
        self.macro("Sh", *title.split(" "))

    def link(self, name):
        self.linked.add(name)

    def special(self, match):
        """(macro, arguments) of a name in running text, or None."""
        code, call, constant, kind = match.group("code", "call", "constant", "type")
        if code is not None:
            if code.lstrip("*") in self.words or code in self.words:
                return "Fa", [code]
            inner = SPECIAL.fullmatch(code)
            return self.special(inner) if inner else ("Ql", [code])
        if call in self.own:
            return "Fn", [call]
        if call in SYSTEM:
            return "Xr", [call, str(SYSTEM[call])]
        if call:
            page = self.find_page(call)
            if call.startswith("zarr_"):
                if not page and not self.find_page.is_known(call):
                    self.problem(f"{call}() is not a public function")
                if not page:
                    return "Fn", [call]
                self.link(page)
                return "Xr", [call, "3"]
            return "Fn", [call]
        if constant:
            return "Dv", [constant]
        name = kind.partition(".")[0]
        page = self.find_page(name)
        if page:
            self.link(page)
        elif not self.find_page.is_known(name):
            self.problem(f"{kind} is not a public name")
        return "Vt", [kind]

    def split_words(self, text):
        """Plain words, and (macro, arguments, tail) tuples."""
        for part in re.finditer(r"(?:`[^`]*`|\S)+", text):
            word = part.group()
            found = [m for m in SPECIAL.finditer(word)]
            if len(found) == 1:
                match = found[0]
                before, after = word[:match.start()], word[match.end():]
                made = self.special(match)
                if before in ("", "(", "[") and re.fullmatch(r"[.,:;)\]?!]*", after):
                    yield made[0], made[1], list(before), list(after)
                    continue
                if before in ("", "(", "[") and made[0] not in ("Xr",):
                    yield made[0], made[1], list(before), ["Ns", argument(after)]
                    continue
            elif found:
                for match in found:
                    self.special(match)  # reports unknown names, links pages
            yield word.replace("`", "")

    def add_running_text(self, text):
        line = []

        def flush():
            if line:
                self.lines += [escape(part) for part in textwrap.wrap(
                    " ".join(line), 78, break_long_words=False, break_on_hyphens=False)]
                line.clear()

        for word in self.split_words(text):
            if isinstance(word, str):
                line.append(word)
                if re.search(r"[.!?]\"?\)?$", word) and word not in NO_END:
                    flush()
                continue
            flush()
            macro, arguments, before, after = word
            self.lines.append(" ".join([f".{macro}", *before, *map(argument, arguments), *after]))
        flush()

    def paragraphs(self, text, first=True):
        """Blocks split by empty lines; `- ` begins an item, `## ` a subsection."""
        for block in re.split(r"\n\s*\n", text.strip("\n")):
            if not block.strip():
                continue
            if block.startswith("## "):
                self.macro("Ss", *block[3:].strip().split(" "))
                first = True
                continue
            lead, *items = re.split(r"^- ", block, flags=re.M)
            if lead.strip():
                if not first:
                    self.macro("Pp")
                self.add_running_text(" ".join(lead.split()))
            if items:
                self.macro("Bl", "-bullet")
                for item in items:
                    self.macro("It")
                    self.add_running_text(sentence(" ".join(item.split()).rstrip(";")))
                self.macro("El")
            first = False

    def code(self, text):
        self.macro("Bd", "-literal")
        self.lines += [literal(line) for line in text.strip("\n").split("\n")]
        self.macro("Ed")
