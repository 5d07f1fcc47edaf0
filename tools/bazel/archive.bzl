# SPDX-License-Identifier: Apache-2.0
"""One static library of targets and of all that they depend on, for programs that Bazel does not build; public headers are its runfiles."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _weft_archive_impl(ctx):
    archives = []
    for dep in ctx.attr.deps:
        for inputs in dep[CcInfo].linking_context.linker_inputs.to_list():
            for library in inputs.libraries:
                archive = library.pic_static_library or library.static_library  # PIC, because other shared libraries may include it
                if archive and archive not in archives:
                    archives.append(archive)
    toolchain = find_cpp_toolchain(ctx)
    ctx.actions.run_shell(
        inputs = archives,
        outputs = [ctx.outputs.out],
        tools = toolchain.all_files,
        command = "ar=$1 out=$2 && shift 2 && { echo \"CREATE $out\"; printf 'ADDLIB %s\\n' \"$@\"; echo SAVE; } | \"$ar\" -M",
        arguments = [toolchain.ar_executable, ctx.outputs.out.path] + [archive.path for archive in archives],
        mnemonic = "WeftArchive",
    )
    headers = [
        header
        for dep in ctx.attr.deps
        for header in dep[CcInfo].compilation_context.headers.to_list()
        if "include/weft/" in header.short_path
    ]
    return DefaultInfo(runfiles = ctx.runfiles(files = headers))

weft_archive = rule(
    implementation = _weft_archive_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo], mandatory = True),
        "out": attr.output(mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    incompatible_use_toolchain_transition = True,
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
