# SPDX-License-Identifier: Apache-2.0
"""Clang as a second C/C++ toolchain beside the default one, for --config=clang and --config=fuzz."""

load("@bazel_tools//tools/cpp:unix_cc_configure.bzl", "configure_unix_toolchain")

# Fetched only if a build uses this toolchain, so machines without clang are not affected.
def _clang_toolchain_impl(ctx):
    clang = None
    for name in ["clang-14", "clang"]:
        clang = clang or ctx.which(name)
    if not clang:
        fail("--config=clang and --config=fuzz need clang; run `./bazelw --packages=ci` once.")
    configure_unix_toolchain(ctx, ctx.attr.cpu, {"gcc": str(clang)})

clang_toolchain = repository_rule(
    implementation = _clang_toolchain_impl,
    attrs = {"cpu": attr.string(default = "k8")},
    configure = True,
    environ = ["PATH"],
)
