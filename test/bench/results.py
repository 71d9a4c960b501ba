"""Cases of `compare` as Markdown: a table each, with rows for each kind of processor."""
import dataclasses
import re

KINDS = ("AVX2", "AVX-512", "AVX-512 BF16", "AMX")


def order(kind):
    return (KINDS.index(kind) if kind in KINDS else len(KINDS), kind)


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


@dataclasses.dataclass
class Case:
    title: str
    about: str = ""
    columns: list = dataclasses.field(default_factory=list)
    rows: list = dataclasses.field(default_factory=list)  # of cells; the first is the processor
    notes: dict = dataclasses.field(default_factory=dict)  # by processor

    def head(self):
        return [f"| {' | '.join(self.columns)} |", "|" + "---|" * len(self.columns)]

    def text(self):
        rows = sorted(self.rows, key=lambda row: order(row[0]))  # stable
        return "\n".join([f"## {self.title}", "", self.about, "", *self.head(),
                          *(f"| {' | '.join(row)} |" for row in rows), "",
                          *(f"- {kind}: {self.notes[kind]}" for kind in sorted(self.notes, key=order))])

    def keep_others(self, old, kind):
        """Takes the rows and notes of other processors from `old`, by the names of columns."""
        for row in old.rows:
            if row[0] != kind:
                known = dict(zip(old.columns, row))
                self.rows.append([known.get(column, "-") for column in self.columns])
        self.notes.update({other: note for other, note in old.notes.items() if other != kind})


def read(text):
    """The cases of a file, by their letters."""
    cases = {}
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, *lines = part.split("\n")
        case = Case(title.strip())
        for line in lines:
            if line.startswith("|---"):
                continue
            if line.startswith("|"):
                if case.columns:
                    case.rows.append(cells_of(line))
                else:
                    case.columns = cells_of(line)
            elif note := re.match(r"- ([^:]+): (.*)", line):
                case.notes[note[1]] = note[2]
            elif line.strip():
                case.about = f"{case.about} {line.strip()}".strip()
        cases[title[0]] = case
    return cases
