"""Libraries of the compiler inside of what is linked, for what is loaded so often that finding them counts."""

# Not under sanitizers, which replace functions of the shared ones.
WITHIN = select({
    "//build_defs:is_sanitized": [],
    "//conditions:default": [
        "-l:libstdc++.a",
        "-static-libgcc",
    ],
})

# A program that needs no library at all, not even a dynamic linker.
STATIC = select({
    "//build_defs:is_sanitized": [],
    "//conditions:default": ["-static"],
})
