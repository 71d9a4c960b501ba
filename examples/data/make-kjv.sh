#!/bin/sh
# Makes kjv.txt: the King James Bible as plain text, from Debian's bible-kjv.
#
#   apt-get install bible-kjv && ./make-kjv.sh > kjv.txt
#
# One verse a line without its reference; a line with book and chapter before
# each chapter. Fails where a byte is not printable ASCII.
set -eu
bible -f gen1:1-rev22:21 | LC_ALL=C awk '
BEGIN {
  n = split("Ge=Genesis Exo=Exodus Lev=Leviticus Num=Numbers Deu=Deuteronomy " \
    "Josh=Joshua Jdgs=Judges Ruth=Ruth 1Sm=1_Samuel 2Sm=2_Samuel 1Ki=1_Kings " \
    "2Ki=2_Kings 1Chr=1_Chronicles 2Chr=2_Chronicles Ezra=Ezra Neh=Nehemiah " \
    "Est=Esther Job=Job Psa=Psalms Prv=Proverbs Eccl=Ecclesiastes " \
    "SSol=Song_of_Solomon Isa=Isaiah Jer=Jeremiah Lam=Lamentations " \
    "Eze=Ezekiel Dan=Daniel Hos=Hosea Joel=Joel Amos=Amos Obad=Obadiah " \
    "Jonah=Jonah Mic=Micah Nahum=Nahum Hab=Habakkuk Zep=Zephaniah Hag=Haggai " \
    "Zec=Zechariah Mal=Malachi Mat=Matthew Mark=Mark Luke=Luke John=John " \
    "Acts=Acts Rom=Romans 1Cor=1_Corinthians 2Cor=2_Corinthians " \
    "Gal=Galatians Eph=Ephesians Phi=Philippians Col=Colossians " \
    "1Th=1_Thessalonians 2Th=2_Thessalonians 1Tim=1_Timothy 2Tim=2_Timothy " \
    "Titus=Titus Phmn=Philemon Heb=Hebrews Jas=James 1Pet=1_Peter " \
    "2Pet=2_Peter 1Jn=1_John 2Jn=2_John 3Jn=3_John Jude=Jude Rev=Revelation",
    list, " ")
  for (i = 1; i <= n; ++i) {
    split(list[i], pair, "=")
    gsub("_", " ", pair[2])
    book[pair[1]] = pair[2]
  }
}
/[^ -~]/ { print "make-kjv: not ASCII: " $0 > "/dev/stderr"; exit 1 }
/^$/ { next }
{
  split($1, reference, ":")
  if (reference[1] != chapter) {
    chapter = reference[1]
    match(chapter, /[0-9]+$/)
    name = substr(chapter, 1, RSTART - 1)
    if (!(name in book)) { print "make-kjv: no book " name > "/dev/stderr"; exit 1 }
    print (NR > 1 ? "\n" : "") book[name] " " substr(chapter, RSTART)
    print ""
  }
  sub(/^[^ ]+ +/, "")
  gsub(/  +/, " ")
  print
}'
