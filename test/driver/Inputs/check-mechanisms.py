"""Compares dialect/MECHANISMS.md with the tree.

check-mechanisms.py ROOT [PAGE]

- Passes, files and headings that the page names exist. The numbers of a link's text stand under the
  heading that it links to.
- A FileCheck test of a row runs a pass of that row, and each pass of the row has such a test. Texts quoted
  beside tests stand in one of them.
- Each mechanism that Boa has is taken away by test/mutations/mechanisms.toml, in a file of its row, and
  caught by a test of its row.
"""

import re
import sys
import tomllib
from pathlib import Path

LINK = re.compile(r"\[([^\]]+)\]\(([^)#]+)(?:#([^)]*))?\)")
PASS = re.compile(r"--((?:boa|kernel|cpu|cuda|convert)-[a-z-]+)")
REGISTERED = re.compile(r'^def (\w+) : \w*Pass<"([\w-]+)"', re.M)
FENCE = re.compile(r"```.*?```", re.S)


def sections(text):
    """The text under each heading, up to the next of the same or a higher level, by GitHub's anchors.
    Headings that are alike have -1, -2 behind them."""
    found, open_ones = {}, []
    for line in FENCE.sub("", text).split("\n"):
        if heading := re.match(r"(#+) (.*)", line):
            level = len(heading[1])
            open_ones = [(of, name) for of, name in open_ones if of < level]
            slug = re.sub(r"[^\w\- ]", "", heading[2].lower()).replace(" ", "-")
            name, again = slug, 0
            while name in found:
                again += 1
                name = f"{slug}-{again}"
            found[name] = ""
            open_ones.append((level, name))
        for _, name in open_ones:
            found[name] += line + "\n"
    return found


def tables(page):
    """The rows of each section's table, without its head."""
    rows = {}
    section = None
    for line in page.split("\n"):
        if line.startswith("## "):
            section = line[3:]
        if line.startswith("| "):
            rows.setdefault(section, []).append([cell.strip() for cell in line.strip("| ").split(" | ")])
    return {section: lines[1:] for section, lines in rows.items()}


class Checker:
    def __init__(self, root, page):
        self.root, self.page, self.errors = root, page, []
        self.folder = root / "dialect"  # that links begin in
        self.file_of = {}  # the name of the pass's file, by pass
        for td in (root / "passes").rglob("*.td"):
            self.file_of.update({name: of for of, name in REGISTERED.findall(td.read_text())})
        table = root / "test/mutations/mechanisms.toml"
        self.mutations = [
            (what, file, row["check"])
            for file, functions in tomllib.loads(table.read_text()).items()
            for rows in functions.values() for what, row in rows.items()]

    def error(self, row, text):
        self.errors.append(f"{row}: {text}")

    def linked(self, cell):
        """The files that it links to, from the root."""
        return [str((self.folder / target).resolve().relative_to(self.root)) for _, target, _ in
                LINK.findall(cell)]

    def check_names(self, row, line):
        for name in PASS.findall(line):
            if name not in self.file_of:
                self.error(row, f"there is no pass --{name}")
        for text, target, anchor in LINK.findall(line):
            file = self.folder / target
            if not file.exists():
                self.error(row, f"there is no {target}")
            elif file.suffix == ".md":
                content = file.read_text()
                if anchor:
                    content = sections(content).get(anchor)
                if content is None:
                    self.error(row, f"{target} has no heading #{anchor}")
                    continue
                for number in re.findall(r"(?<!\w)\d+(?:[.,]\d+)*", text):
                    if not re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d]|[.,]\d)", content):
                        self.error(row, f"{number} is not in {target}#{anchor}")

    def check_test(self, row, by, tests):
        passes = PASS.findall(by)
        run = {}
        texts = {}
        for file in self.linked(tests):
            if not (self.root / file).is_file():
                continue
            texts[file] = (self.root / file).read_text()
            if file.endswith((".mlir", ".test")):
                run[file] = " ".join(line for line in texts[file].split("\n")
                                     if re.search(r"(RUN|DEFINE): ", line))
        if not texts:
            self.error(row, "it has no test")
        for name in passes:
            if not any(f"--{name}" in line for line in run.values()):
                self.error(row, f"no test of it runs --{name}")
        for file, line in run.items():
            if passes and not any(f"--{name}" in line for name in passes):
                self.error(row, f"{file} runs no pass of it")
        for quoted in re.findall(r"`([^`]+)`", tests):
            if not any(quoted in text for text in texts.values()):
                self.error(row, f"no test of it has `{quoted}`")

    def check_mutations(self, row, by, tests):
        own = [mutation for mutation in self.mutations if mutation[0].split(": ")[0] == row]
        if not own:
            self.error(row, "mechanisms.toml does not take it away")
        stems = {self.file_of.get(name) for name in PASS.findall(by)}
        for what, file, check in own:
            if Path(file).stem not in stems and file not in self.linked(by):
                self.error(row, f"`{what}` changes {file}, which the row does not name")
            test = check if check.endswith((".mlir", ".test")) else check.split()[1].strip("*")
            if f"test/{test}" not in self.linked(tests) and f"`{test}`" not in tests:
                self.error(row, f"`{what}` is caught by {test}, which the row does not name")

    def run(self):
        page = self.page.read_text()
        own, refused = tables(page).values()
        self.check_names("the text", " ".join(line for line in page.split("\n") if not line.startswith("|")))
        for row in own:
            if len(row) != 5:
                self.error(row[0], f"{len(row)} cells instead of 5")
                continue
            name, _, by, tests, _ = row
            self.check_names(name, " | ".join(row))
            self.check_test(name, by, tests)
            self.check_mutations(name, by, tests)
        for row in refused:
            self.check_names(row[0], " | ".join(row))
            if len(row) != 4 or not LINK.search(row[3]):
                self.error(row[0], "no measurement is linked")
        names = {row[0] for row in own}
        for what, file, _ in self.mutations:
            if what.split(": ")[0] not in names:
                self.error(what, "mechanisms.toml takes away what the page does not have")
        return len(own), len(refused)


def main(root, page):
    checker = Checker(root, page)
    own, refused = checker.run()
    print(*checker.errors, sep="\n")
    print(f"{own} mechanisms, {refused} decided against: {len(checker.errors)} errors")
    return 1 if checker.errors else 0


if __name__ == "__main__":
    ROOT = Path(sys.argv[1]).resolve()
    sys.exit(main(ROOT, Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else ROOT / "dialect/MECHANISMS.md"))
