"""Guards the layering: a test that fails as soon as one set of targets depends on another."""

def no_dependency_test(name, of, on, but_for = None):
    """Fails if a target of `of` depends, over any path, on a target of `on`; prints the path.

    `but_for` is a target that may: what depends on `on` through it alone is fine. Then the targets that do not keep to it are printed.
    """
    sets = {"of": "set(%s)" % " ".join(of), "on": "set(%s)" % " ".join(on), "but": but_for}
    expression = "somepath({of}, {on})".format(**sets)
    if but_for:
        # Whoever uses, next to it, what but_for is made with, and is no part of that.
        expression = ("rdeps({of}, {on} + rdeps({but}, {on}) except {but}, 1) except deps({but})").format(**sets)
    native.genquery(
        name = name + "_path",
        expression = expression,
        scope = of + on + ([but_for] if but_for else []),
        testonly = True,
    )
    native.sh_test(
        name = name,
        size = "small",
        srcs = ["//build_defs:expect_empty.sh"],
        args = ["$(rootpath :" + name + "_path)"],
        data = [":" + name + "_path"],
    )
