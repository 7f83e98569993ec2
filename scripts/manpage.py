"""Writes pages of the manual as mdoc(7) from the items of the headers. scripts/manual makes the
list of pages."""
import re

from csource import ROOT
from mdoc import Writer, escape, sentence

DATE = "November 22, 2026"  # fixed, so that pages are reproducible
ANY_THREAD = ("Several threads may make these calls at the same time, also with the same "
              "handles.")
problems = []  # what is wrong with comments, found while pages are written


def type_names(item):
    """Names of types that a declaration needs."""
    text = " ".join([p for p, _ in item.params] + [m.type for m in item.members] + [item.code])
    return set(re.findall(r"\bzarr_\w+", text)) - {item.name}


def split_text(text):
    """The text without the paragraphs about threads and the specification."""
    said, threads, spec = [], [], []
    for block in re.split(r"\n\s*\n", text):
        flat = " ".join(block.split())
        if flat.startswith("Thread class:"):
            threads.append(flat.removeprefix("Thread class:").strip())
        elif flat.startswith("Spec:"):
            spec.append(flat.removeprefix("Spec:").strip())
        else:
            said.append(block)
    return "\n\n".join(said), threads, spec


def include_path(header):
    """What a program includes for a header: zarrc/zarrc.h if that has it."""
    everything = (ROOT / "include/zarrc/zarrc.h").read_text()
    return "zarrc/zarrc.h" if f"#include <{header}>" in everything else header


def write_prototypes(w, page):
    w.section("SYNOPSIS")
    w.macro("In", include_path(page.items[0].header))
    for item in page.functions:
        w.macro("Ft", item.result)
        if item.params[0][1]:
            w.macro("Fo", item.name)
            for text, _ in item.params:
                w.macro("Fa", text)
            w.macro("Fc")
        else:
            w.macro("Fn", item.name, "void")
    for item in page.everything:
        if item.code:
            w.code(item.code)


def write_parameters(w, item):
    known = [name for _, name in item.params]
    rows = {}
    for name, text in item.doc.params.items():
        if text != "borrowed" or not item.group:  # else it is the handle of all
            rows.setdefault(text, []).append(name)
        if name not in known:
            problems.append(f"{item.name}: @param {name} is not a parameter")
    if not rows:
        return
    w.macro("Bl", "-tag", "-width", "Ds")
    for text, names in rows.items():
        w.lines.append(".It " + " , ".join(f"Fa {name}" for name in names))
        w.add_running_text(sentence(text))
    w.macro("El")


def member_item(member):
    if member.callback:
        return f'.It Fa "{member.type}"'
    names = [n for n in re.split(r",\s*", member.names) if not n.startswith("reserved")]
    return (f'.It Vt "{member.type}"' + (" Ns " if member.type.endswith("*") else " ") +
            " , ".join(f"Fa {name}" for name in names))


def write_members(w, manual, item):
    w.macro("Bl", "-tag", "-width", "Ds")
    for member in item.members:
        text = member.text
        if not text and re.match(r"\**reserved", member.names):
            continue
        if re.match(r"struct_size\b", member.names):
            init = f"{item.name.upper()}_INIT"
            sets = f", which {init} sets" if init in manual.defines else ""
            text = f"`struct_size` is the size of the struct in bytes{sets}; {text}".rstrip("; ")
        if not text:
            problems.append(f"{item.name}.{member.names}: has no comment")
        w.lines.append(member_item(member))
        w.paragraphs(sentence(text))
    w.macro("El")


def write_type(w, manual, item):
    text, threads, _ = split_text(item.doc.text)
    w.paragraphs(text)
    if threads:
        w.macro("Pp")
        w.add_running_text("Thread class: " + sentence(threads[0]))
    if item.members:
        write_members(w, manual, item)


def write_constants(w, manual, page):
    for item in manual.constants(page):
        if item.kind == "macro":
            w.macro("Pp")
            w.macro("Dv", item.name)
            w.add_running_text("is " + item.doc.text.split("\n\n")[0][0].lower() +
                      " ".join(item.doc.text.split())[1:])
            continue
        prefix = re.match(r"ZARR_[A-Z0-9]+_", item.members[-1].names).group()
        title, _, more = " ".join(item.doc.text.split()).replace("`", "").partition(". ")
        w.macro("Ss", *(title.rstrip(".") or f"{prefix}*").split(" "))
        if more:
            w.add_running_text(more)
        w.macro("Bl", "-tag", "-width", "Ds")
        for member in item.members:
            if not member.text:
                problems.append(f"{item.header}: {member.names} has no comment")
            w.lines.append(f".It Dv {member.names}")
            w.paragraphs(sentence(member.text))
        w.macro("El")


def write_description(w, manual, page):
    w.section("DESCRIPTION")
    if page.group:
        text, _, _ = split_text(page.group.doc.text)
        w.paragraphs(text)
        w.macro("Bl", "-tag", "-width", "Ds")
        for item in page.functions:
            w.lines.append(f".It Fn {item.name}")
            w.paragraphs(split_text(item.doc.text)[0])
            write_parameters(w, item)
        w.macro("El")
    elif page.functions:
        text, _, _ = split_text(page.items[0].doc.text)
        w.paragraphs(text)
        write_parameters(w, page.items[0])
    else:
        write_type(w, manual, page.items[0])
    for item in page.types:
        kind = {"struct": "struct", "callback": "function", "typedef": "type"}[item.kind]
        w.macro("Ss", "The", kind, item.name)
        write_type(w, manual, item)
    write_constants(w, manual, page)


def write_returns(w, page):
    rows = []
    for item in page.functions:
        status = item.result == "zarr_status"
        text = item.doc.returns or ("ZARR_OK, or a code under ERRORS" if status else "")
        if text:
            rows.append((item.name, re.sub(r"^as (zarr_\w+\(\))$", r"what \1 returns", text)))
    if not rows:
        return
    w.section("RETURN VALUES")
    same = {}
    for name, text in rows:
        same.setdefault(text, []).append(name)
    for i, (text, names) in enumerate(same.items()):
        if i:
            w.macro("Pp")
        for name, after in zip(names, [*[","] * (len(names) - 2), "and", ""][-len(names):]):
            w.lines.append(f".Fn {name}" + (" ," if after == "," else ""))
            if after == "and":
                w.lines.append("and")
        w.add_running_text(("return " if len(names) > 1 else "returns ") + sentence_end(text))


def sentence_end(text):
    return text if text.endswith(".") else text + "."


def write_errors(w, page):
    fallible = [i for i in page.functions if i.result == "zarr_status"]
    if not fallible:
        return
    rows = {}
    for code, text in page.group.doc.errors if page.group else []:
        rows.setdefault(code, {})[text] = fallible
    for item in fallible:
        for code, text in item.doc.errors:
            rows.setdefault(code, {}).setdefault(text, []).append(item.name)
    w.section("ERRORS")
    if rows:
        w.macro("Bl", "-tag", "-width", "Ds")
        for code, texts in rows.items():
            w.lines.append(f".It Dv {code}")
            for i, (text, names) in enumerate(texts.items()):
                if i:
                    w.macro("Pp")
                if len(fallible) > 1 and len(names) < len(fallible):
                    for name in names:
                        w.lines.append(f".Fn {name}" + (" ," if name != names[-1] else " :"))
                    w.add_running_text(sentence_end(text))
                else:
                    w.add_running_text(sentence(text))
        w.macro("El")
        w.macro("Pp")
    w.lines += ["Codes that every call can return are in", ".Xr libzarrc 7 ."]
    w.link("libzarrc")


def write_examples(w, manual, page):
    shown = [e for e in manual.examples if set(e[0]) & set(page.names)]
    if shown:
        w.section("EXAMPLES")
        for i, (_, words, code, _) in enumerate(shown):
            if i:
                w.macro("Pp")
            if words:
                w.paragraphs(words)
            w.code(code)
        return
    for item in page.everything:
        for names, _, code, _ in manual.examples:
            if names and re.search(rf"\b{item.name}\b", code):
                w.section("EXAMPLES")
                w.lines += ["The program in", f".Xr {manual.where[names[0]]} 3", "uses"]
                w.macro("Fn" if item.kind == "function" else "Vt", item.name, tail=["."])
                w.link(manual.where[names[0]])
                return


def write_threads(w, page):
    if not page.functions:
        return
    said = split_text(page.group.doc.text)[1] if page.group else []
    for item in page.functions:
        said += split_text(item.doc.text)[1]
    w.section("THREADS")
    if said:
        w.add_running_text("Thread class: " + " ".join(map(sentence_end, said)))
    else:
        w.add_running_text(ANY_THREAD if len(page.functions) > 1 else
                  ANY_THREAD.replace("these calls", "this call"))


def write_see_also(w, manual, page):
    for item in page.items:
        for name in re.findall(r"\bzarr_\w+", item.doc.see):
            if manual(name):
                w.link(manual(name))
            else:
                problems.append(f"{item.name}: @see {name}, which has no page")
    for item in page.everything:
        for name in type_names(item) - {"zarr_error", "zarr_status"}:
            if manual(name):
                w.link(manual(name))
    names = sorted(w.linked - {page.name, "libzarrc"})
    w.section("SEE ALSO")
    links = [f".Xr {name} 3" for name in names] + [".Xr libzarrc 7"]
    w.lines += [link + (" ," if link != links[-1] else "") for link in links]
    spec = split_text(page.group.doc.text)[2] if page.group else []
    for item in page.items:
        spec += split_text(item.doc.text)[2]
    if spec:
        w.section("STANDARDS")
        for i, text in enumerate(dict.fromkeys(spec)):
            w.add_running_text(sentence_end(text))


def version():
    text = (ROOT / "include/zarrc/version.h").read_text()
    return re.search(r'ZARR_VERSION_STRING "(.*)"', text).group(1)


def head(w, source, title, section, names, summary):
    w.lines.append(f'.\\" Written by scripts/manual from include/{source}; change the comments '
                   'there.')
    w.lines.append(f".Dd {DATE}")
    w.lines.append(f".Dt {title.upper()} {section}")
    w.lines.append(f".Os zarrc {version()}")
    w.section("NAME")
    for name in names:
        w.lines.append(f".Nm {name}" + (" ," if name != names[-1] else ""))
    w.lines.append(f".Nd {escape(summary)}")
    if section == 3:
        w.section("LIBRARY")
        w.lines.append("Zarr arrays in C (libzarrc, \\-lzarrc)")


def write_page(manual, page):
    words = {name for i in page.everything for _, name in i.params}
    words |= {re.sub(r"\[.*|\W", "", n) for i in page.everything for m in i.members
              for n in m.names.split(",")}
    w = Writer({i.name for i in page.functions}, words, manual,
               lambda text: problems.append(f"{page.name}: {text}"))
    head(w, page.items[0].header, page.name, 3, page.names, page.summary())
    write_prototypes(w, page)
    write_description(w, manual, page)
    write_returns(w, page)
    write_examples(w, manual, page)
    write_errors(w, page)
    write_threads(w, page)
    write_see_also(w, manual, page)
    return "\n".join(w.lines) + "\n"


# ---- section 7 ---------------------------------------------------------------------

def write_overview(manual):
    w = Writer(set(), set(), manual, lambda text: problems.append(f"libzarrc: {text}"))
    text = next(h.doc_main for h in manual.headers if h.doc_main)
    title, _, text = text.partition("\n")
    head(w, "zarrc/zarrc.h", "libzarrc", 7, ["libzarrc"], title.strip())
    w.section("SYNOPSIS")
    w.macro("In", "zarrc/zarrc.h")
    w.code("cc program.c $(pkg-config --cflags --libs zarrc)")
    w.section("DESCRIPTION")
    w.paragraphs(text)
    w.macro("Ss", "Opaque", "types")
    w.macro("Bl", "-tag", "-width", "Ds")
    place = {item.name: text.find(f"`{item.name}`") for item in manual.opaque.values()}
    for name in sorted(place, key=lambda name: (place[name] < 0, place[name])):
        if manual.opaque[name].doc.text:
            w.lines.append(f".It Vt {name}")
            w.paragraphs(manual.opaque[name].doc.text)
    w.macro("El")
    w.section("EXAMPLES")
    code = next(code for _, _, code, name in manual.examples if name == "readme.c")
    w.paragraphs("Creates an array, writes it, and reads its last column.")
    w.code(code)
    w.section("SEE ALSO")
    links = [".Xr zarrc 1", *(f".Xr {n} 3" for n in sorted(w.linked)), ".Xr zarrc-api 7"]
    w.lines += [link + (" ," if link != links[-1] else "") for link in links]
    return "\n".join(w.lines) + "\n"


def write_list(manual):
    w = Writer(set(), set(), manual, lambda text: problems.append(f"zarrc-api: {text}"))
    head(w, "zarrc/", "zarrc-api", 7, ["zarrc-api"], "calls and types of libzarrc")
    w.section("DESCRIPTION")
    apart = [h.path for h in manual.headers if include_path(h.path) == h.path
             and h.path != "zarrc/zarrc.h"]
    w.paragraphs("Lists all calls and public types by their header. zarrc/zarrc.h includes "
                 f"all headers but {', '.join(apart[:-1])} and {apart[-1]}.")
    for header in manual.headers:
        pages = [p for p in manual.pages if p.items[0].header == header.path]
        if not pages:
            continue
        order = [i.name for i in header.items]
        w.macro("Ss", *header.path.split(" "))
        w.paragraphs(split_text(header.doc.text)[0])
        w.macro("Bl", "-tag", "-width", "Ds")
        for page in sorted(pages, key=lambda p: order.index(p.name)):
            w.lines.append(".It " + " , ".join(f"Xr {name} 3" for name in page.names))
            w.add_running_text(sentence(page.summary()))
        w.macro("El")
    w.section("SEE ALSO")
    w.lines.append(".Xr libzarrc 7")
    return "\n".join(w.lines) + "\n"
