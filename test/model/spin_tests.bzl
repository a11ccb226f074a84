"""Tests of a model by spin."""

def spin_tests(name, cases, full = {}, model = None, size = "medium"):
    """For each case a test <name>_<case>_test.

    Args:
      name: what the tests' names begin with; also of the model, without `model`.
      cases: what check.sh is to find and the model's switches, by case.
      full: the same of those that take long: `make model` runs them, all of them are <name>_long.
      model: the file.
      size: of each test.
    """
    model = model or name + ".pml"
    for case, arguments in cases.items() + full.items():
        native.sh_test(
            name = "%s_%s_test" % (name, case),
            size = size,
            srcs = ["check.sh"],
            tags = ["manual"] if case in full else [],
            args = ["$(rootpath %s)" % model] + arguments,
            data = [model],
        )
    if full:
        native.test_suite(
            name = name + "_long",
            tags = ["manual"],
            tests = [":%s_%s_test" % (name, case) for case in full],
        )
