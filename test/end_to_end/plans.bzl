"""The plans that the end-to-end tests execute."""

load("//build_defs:plan.bzl", "compiled_plan")

def _digits(value):
    """A number, or the numbers of a list as it is written, as a part of a name."""
    return str(value).replace("[", "").replace("]", "").replace(", ", "_").replace(",", "_")

def compiled_plans(collective, algorithms, defines, ranks, options = []):
    """Compiles a collective's algorithms, each for every dictionary of `defines[collective/algorithm]`, or for each of
    `ranks`, with the options. Returns the names of the plan files: JSON and CBOR in turn, so that both are read."""
    names = []
    for algorithm in algorithms:
        path = collective + "/" + algorithm
        for values in defines.get(path, [{"ranks": number} for number in ranks]):
            size = "_".join([key + _digits(values[key]) for key in sorted(values)])
            encoding = "cbor" if len(names) % 2 else "json"
            how = "".join([option.replace("--", "_").replace("-", "_").replace("=", "") for option in options])
            name = "%s_%s_%s%s.plan.%s" % (collective, algorithm, size, how, encoding)
            compiled_plan(
                name = name,
                src = "//algorithms:" + path + ".coll",
                imports = ["//algorithms:common"],
                defines = values,
                options = options,
            )
            names.append(name)
    return names
