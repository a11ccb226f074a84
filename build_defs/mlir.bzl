"""TableGen and lit over the system's MLIR."""

def mlir_tablegen(name, td_file, outs, td_srcs = [], docs = {}):
    """Generates the files of `outs` ({file: mlir-tblgen flags}) from td_file; `name` is a cc_library of them. And those of `docs`."""
    for out, flags in list(outs.items()) + list(docs.items()):
        native.genrule(
            name = name + "_" + out.replace(".", "_"),
            srcs = [td_file, "@llvm//:td_files"] + td_srcs,
            outs = [out],
            cmd = "$(location @llvm//:mlir-tblgen) " + flags +
                  " -I . -I external/llvm/include $(location " + td_file + ") -o $@",
            tools = ["@llvm//:mlir-tblgen"],
            visibility = ["//:__subpackages__"] if out in docs else None,
        )
    native.cc_library(
        name = name,
        textual_hdrs = outs.keys(),
    )
