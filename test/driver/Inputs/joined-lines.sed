# Joins the lines of a shell's command: those behind a backslash.
:again
/ \\$/ {
  N
  s/ \\\n */ /
  b again
}
