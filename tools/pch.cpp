// The unit that owns the precompiled header (tools/pch.h).
