// Owns the precompiled header (pch.h), which is for programs: they are compiled as one.
int main() {}
