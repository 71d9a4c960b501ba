"""Reads a page of --report as XML, and prints its title, sections, pictures and tables.

check-page.py FILE
"""

import re
import sys
import xml.etree.ElementTree as ET

text = open(sys.argv[1], encoding="utf-8").read()
root = ET.fromstring(text)
SVG = "{http://www.w3.org/2000/svg}"


def words(element):
    return " ".join("".join(element.itertext()).split())


print(words(root.find(".//h1")))
print("sections:", *(section.get("id") for section in root.iter("section")))
pictures = [svg for svg in root.iter(SVG + "svg") if svg.get("role") == "img"]
described = [svg for svg in pictures if len(svg.get("aria-label", "")) > 40]
print(f"pictures with words: {len(described)} of {len(pictures)}")
for row in root.iter("tr"):
    print(" | ".join(words(cell) for cell in row))
# Nothing is loaded, and nothing runs.
loads = re.findall(r"<(?:script|link|img|iframe)|@import|url\(|\son\w+=", text)
print("loads:", *loads)
sys.exit(1 if loads else 0)
