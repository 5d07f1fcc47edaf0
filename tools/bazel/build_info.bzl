# SPDX-License-Identifier: Apache-2.0
"""The source file that holds the commit, read from the workspace status (tools/version)."""

def _weft_build_info_impl(ctx):
    cpp = ctx.fragments.cpp
    flags = [ctx.var["COMPILATION_MODE"]] + cpp.copts + cpp.conlyopts
    filled = ctx.actions.declare_file(ctx.label.name + ".c.flags")
    ctx.actions.expand_template(
        template = ctx.file.template,
        output = filled,
        substitutions = {"@FLAGS@": " ".join(flags).replace("\\", "\\\\").replace("\"", "\\\"")},
    )

    # The stable status file changes with the commit; only this action then runs again.
    ctx.actions.run_shell(
        inputs = [filled, ctx.info_file],
        outputs = [ctx.outputs.out],
        command = "commit=$(sed -n 's/^STABLE_WEFT_COMMIT //p' \"$1\") && sed \"s/@COMMIT@/${commit:-unknown}/\" \"$2\" > \"$3\"",
        arguments = [ctx.info_file.path, filled.path, ctx.outputs.out.path],
        mnemonic = "WeftBuildInfo",
    )

weft_build_info = rule(
    implementation = _weft_build_info_impl,
    attrs = {
        "out": attr.output(mandatory = True),
        "template": attr.label(allow_single_file = True, mandatory = True),
    },
    fragments = ["cpp"],
)
