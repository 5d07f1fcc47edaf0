# SPDX-License-Identifier: Apache-2.0
"""cuda_library: CUDA sources compiled by nvcc into something that cc_library, cc_binary and cc_test depend on."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@weft_cuda//:toolkit.bzl", "NVCC", "NVCC_IS_KNOWN")

# Machine code for the two generations with binary tensor products worth tuning for, and PTX of the older one, from
# which a driver generates code for all other cards.
DEFAULT_ARCHS = [
    "sm_80",
    "sm_90a",
    "compute_80",
]

def _gencode(arch):
    if arch.startswith("sm_"):
        return "-gencode=arch=compute_{0},code=sm_{0}".format(arch[len("sm_"):])
    if arch.startswith("compute_"):
        return "-gencode=arch={0},code={0}".format(arch)
    fail("archs: {} is neither sm_NN nor compute_NN".format(arch))

def _cuda_library_impl(ctx):
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    own = cc_common.create_compilation_context(
        headers = depset(ctx.files.hdrs),
        includes = depset(),
    )
    deps = [dep[CcInfo] for dep in ctx.attr.deps + ctx.attr._runtime]
    merged = cc_common.merge_cc_infos(direct_cc_infos = [CcInfo(compilation_context = own)], cc_infos = deps)
    context = merged.compilation_context

    args = ctx.actions.args()
    args.add_all(["-c", "-O3", "-std=c++17", "-lineinfo", "--Werror=cross-execution-space-call"])

    # Names in /tmp contain process numbers, which are the same in several sandboxes; a file once vanished before it was
    # read.
    args.add("--objdir-as-tempdir")
    args.add("-ccbin", cc_toolchain.compiler_executable)
    args.add_all(ctx.attr.archs, map_each = _gencode)
    args.add_joined(["-fPIC", "-Wall", "-Wextra", "-Wshadow", "-ffunction-sections"], join_with = ",", format_joined = "-Xcompiler=%s")

    # Not tied to --config=werror, which would compile all of CUDA a second time.
    if NVCC_IS_KNOWN:
        args.add("-Werror=all-warnings")

        # Reduces the size, most of which is line numbers, to a quarter.
        args.add("-compress-mode=size")
    args.add_all(context.defines, before_each = "-D")
    args.add_all(context.quote_includes, format_each = "-Xcompiler=-iquote,%s")
    args.add_all(context.includes, before_each = "-I")
    args.add_all(context.system_includes, before_each = "-isystem")
    args.add_all(ctx.attr.copts)

    objects = []
    for src in ctx.files.srcs:
        if src.extension != "cu":
            continue
        object = ctx.actions.declare_file("_cuda/{}/{}.o".format(ctx.label.name, src.basename))
        ctx.actions.run(
            executable = NVCC,
            arguments = [args, "-o", object.path, src.path],
            inputs = depset(ctx.files.srcs + ctx.files._toolkit, transitive = [context.headers]),
            outputs = [object],
            mnemonic = "NvccCompile",
            progress_message = "Compiling {} with nvcc".format(src.short_path),
            use_default_shell_env = True,
        )
        objects.append(object)

    linking, outputs = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        name = ctx.label.name,
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = depset(objects),
            pic_objects = depset(objects),
        ),
        linking_contexts = [dep.linking_context for dep in deps],
        disallow_dynamic_library = True,
    )
    return [
        DefaultInfo(files = depset(objects)),
        CcInfo(compilation_context = context, linking_context = linking),
    ]

_cuda_library = rule(
    implementation = _cuda_library_impl,
    attrs = {
        "archs": attr.string_list(default = DEFAULT_ARCHS),
        "copts": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "srcs": attr.label_list(allow_files = [".cu", ".cuh", ".h"], mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
        "_runtime": attr.label_list(default = ["@weft_cuda//:cudart"]),
        "_toolkit": attr.label(default = "@weft_cuda//:toolkit.txt", allow_single_file = True),
    },
    fragments = ["cpp"],
    incompatible_use_toolchain_transition = True,
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

# For target_compatible_with of targets that make no sense without CUDA: they are then skipped, not broken.
NEEDS_CUDA = select({
    "//tools:has_cuda": [],
    "//conditions:default": ["@platforms//:incompatible"],
})

def cuda_library(name, **kwargs):
    """CUDA sources (.cu, with .h and .cuh beside them), compiled for `archs`; skipped where there is no CUDA.

    Args:
      name: the target's name.
      **kwargs: srcs, hdrs, deps, copts (nvcc's), archs (sm_NN for machine code, compute_NN for PTX), visibility, tags.
    """
    _cuda_library(name = name, target_compatible_with = NEEDS_CUDA, **kwargs)
