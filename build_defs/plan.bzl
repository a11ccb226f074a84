"""Plans compiled by occlc as part of the build."""

def compiled_plan(name, src, imports = [], defines = {}, options = [], **kwargs):
    """Compiles the .coll file src, which may import `imports`, with -D for each of defines; the output is `name`, a .plan.json or .plan.cbor file."""
    words = ["-D '%s=%s'" % (key, defines[key]) for key in sorted(defines)] + options
    native.genrule(
        name = name + "_compile",
        srcs = [src] + imports,
        outs = [name],
        cmd = "$(location //tools/occlc) compile $(location " + src + ") " + " ".join(words) + " -o $@",
        tools = ["//tools/occlc"],
        **kwargs
    )
