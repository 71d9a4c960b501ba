"""Writes golden/expected.json: what jinja2 makes of golden/templates and golden/snippets.json.

    make-golden.py          needs jinja2 3.1
"""

import json
from pathlib import Path

import reference

FOLDER = Path(__file__).parent / "golden"


def main():
    inputs = json.loads((FOLDER / "conversations.json").read_text())
    inputs = [{key: value for key, value in entry.items() if key != "about"} for entry in inputs]
    expected = {}
    for path in sorted((FOLDER / "templates").glob("*.jinja")):
        expected[path.stem] = reference.render(path.read_text(), inputs)
        failed = [i for i, result in enumerate(expected[path.stem]) if "text" not in result]
        print(f"{path.stem}: {len(failed)} of {len(inputs)} refused or faulty {failed}")
    snippets = json.loads((FOLDER / "snippets.json").read_text())
    given = snippets["given"]
    expected["snippets"] = [reference.render(text, [given])[0] for text in snippets["templates"]]
    lines = [json.dumps(name) + ": [\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in results) + "]"
             for name, results in expected.items()]
    (FOLDER / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
