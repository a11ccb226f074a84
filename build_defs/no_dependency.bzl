"""Guards the layering: a test that fails as soon as one set of targets depends on another."""

def no_dependency_test(name, of, on):
    """Fails if a target of `of` depends, over any path, on a target of `on`; prints the path."""
    expression = "somepath(set(%s), set(%s))" % (" ".join(of), " ".join(on))
    native.genquery(
        name = name + "_path",
        expression = expression,
        scope = of + on,
        testonly = True,
    )
    native.sh_test(
        name = name,
        size = "small",
        srcs = ["//build_defs:expect_empty.sh"],
        args = ["$(rootpath :" + name + "_path)"],
        data = [":" + name + "_path"],
    )
