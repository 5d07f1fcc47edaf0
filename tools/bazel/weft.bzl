# SPDX-License-Identifier: Apache-2.0
"""How every target of weft is declared: language standard, warnings, visibility by room, and the kinds of test."""

# C11 without GNU extensions. A source that needs POSIX or more says so itself (#define _POSIX_C_SOURCE 200809L).
C_COPTS = [
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wshadow",
    "-Wconversion",
    "-Wstrict-prototypes",
    "-Wmissing-prototypes",
    "-Wvla",
]

_CXX_COPTS = [
    "-std=c++17",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wshadow",
]

def _room_visibility():
    """Who may depend on a target of this room: the one direction, as the package groups of the root BUILD file."""
    room = native.package_name().split("/")[0]
    if room in ["kernels", "lib", "peer", "sim", "store", "bench"]:
        return ["//:may_use_" + room]
    return ["//visibility:private"]

def _with_defaults(kwargs):
    kwargs["copts"] = C_COPTS + kwargs.pop("copts", [])
    kwargs.setdefault("visibility", _room_visibility())
    return kwargs

def weft_cc_library(name, **kwargs):
    """A C library of one room, visible to the rooms above it.

    Args:
      name: the target's name.
      **kwargs: as cc_library's. Public headers lie in an `include` folder: includes = ["include"].
    """
    native.cc_library(name = name, **_with_defaults(kwargs))

def weft_isa_library(name, copts, srcs, hdrs = [], deps = [], **kwargs):
    """Sources that are compiled for more than the baseline (copts = ["-mavx2"]); Bazel has no flags per file.

    Nothing outside these sources is compiled with these flags, so headers that they share with the rest must not hold
    non-static inline functions: the linker might keep the copy made with the wider instructions.

    Args:
      name: the target's name.
      copts: the flags of the instruction set.
      srcs: the sources.
      hdrs: headers.
      deps: dependencies.
      **kwargs: further attributes of cc_library.
    """

    # Before gcc 13, AddressSanitizer's fake stack, which it uses to find uses after return, is aligned to 32 bytes, and
    # vectors of 64 bytes on it crash.
    asan_copts = select({
        "//tools:with_asan": ["--param=asan-use-after-return=0"],
        "//conditions:default": [],
    })

    # Clang's sanitizers take minutes for these long loops, which --config=asan tests at guard pages; fuzzing is for the
    # code above them.
    fuzz_copts = select({
        "//tools:is_fuzzing": ["-fno-sanitize=address,undefined", "-Wno-pass-failed"],
        "//conditions:default": [],
    })
    weft_cc_library(name = name, srcs = srcs, hdrs = hdrs, deps = deps, copts = copts + asan_copts + fuzz_copts, **kwargs)

def weft_cc_binary(name, **kwargs):
    """A C program. Private unless it says otherwise."""
    kwargs.setdefault("visibility", ["//visibility:private"])
    native.cc_binary(name = name, **_with_defaults(kwargs))

def weft_cc_test(name, size = "small", env = {}, **kwargs):
    """A C test with a main of its own, for what does not fit a Check suite."""
    native.cc_test(name = name, size = size, env = env, **_with_defaults(kwargs))

def weft_check_test(name, deps = [], env = {}, **kwargs):
    """A Check suite. Each of its tests runs in a process of its own (CK_FORK), under sanitizers too.

    Bazel's own limit (size) bounds the suite; Check's four seconds for each test would only punish a busy machine.
    Suites that make threads carry the tag "threads": they also run under ThreadSanitizer.

    Args:
      name: the target's name.
      deps: dependencies beside Check.
      env: environment of the test.
      **kwargs: as cc_test's.
    """
    merged = {"CK_DEFAULT_TIMEOUT": "0"}
    merged.update(env)
    weft_cc_test(
        name = name,
        deps = deps + ["@check"],
        env = merged,
        **kwargs
    )

def weft_header_test(name, hdrs, deps):
    """Each public header alone, twice over, as C11 and as C++17.

    Args:
      name: the target's name.
      hdrs: the headers, as labels: they are included by their path from the root, so that warnings in them show.
      deps: the libraries they belong to.
    """
    sources = {"c": [], "cc": []}
    for hdr in hdrs:
        label = Label(hdr) if hdr.startswith("//") else None
        path = label.package + "/" + label.name if label else native.package_name() + "/" + hdr.lstrip(":")
        for extension in sources:
            out = "{}_{}.{}".format(name, path.replace("/", "_").replace(".", "_"), extension)
            native.genrule(
                name = out.replace(".", "_"),
                outs = [out],
                cmd = "printf '#include \"%s\"\\n#include \"%s\"\\nextern int weft_header_test_unused;\\n' {0} {0} > $@".format(path),
                testonly = True,
            )
            sources[extension].append(out)
    native.cc_library(name = name + "_c11", srcs = sources["c"], copts = C_COPTS, deps = deps, testonly = True, visibility = ["//visibility:private"])
    native.cc_library(name = name + "_cxx17", srcs = sources["cc"], copts = _CXX_COPTS + ["-Wold-style-cast"], deps = deps, testonly = True, visibility = ["//visibility:private"])
    native.cc_test(
        name = name,
        size = "small",
        srcs = ["//tools/bazel:empty_main.c"],
        deps = [":" + name + "_c11", ":" + name + "_cxx17"],
        visibility = ["//visibility:private"],
    )

def weft_fuzz_test(name, corpus, srcs, deps = [], size = "small", **kwargs):
    """A fuzz target: a source with LLVMFuzzerTestOneInput, and a corpus.

    Everywhere it is a test that feeds each file of the corpus, and every prefix of it, to the target. Under
    --config=fuzz the program NAME_fuzzer is that target under libFuzzer; tools/fuzz runs it.

    Args:
      name: the target's name.
      corpus: the corpus files (glob).
      srcs: sources.
      deps: dependencies.
      size: size of the replay.
      **kwargs: further attributes of the test.
    """
    weft_cc_library(name = name + "_target", srcs = srcs, deps = deps, testonly = True, alwayslink = True, visibility = ["//visibility:private"])
    weft_cc_test(
        name = name,
        size = size,
        srcs = ["//tools/fuzz:replay_main.c"],
        args = ["$(rootpaths {})".format(name + "_corpus")],
        data = [name + "_corpus"],
        tags = kwargs.pop("tags", []) + ["fuzz"],
        deps = [":" + name + "_target"],
        **kwargs
    )
    native.filegroup(name = name + "_corpus", srcs = corpus, visibility = ["//visibility:private"])
    weft_cc_binary(
        name = name + "_fuzzer",
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["fuzzer"],
        target_compatible_with = select({
            "//tools:is_fuzzing": [],
            "//conditions:default": ["@platforms//:incompatible"],
        }),
        testonly = True,
        deps = [":" + name + "_target"],
    )

def weft_aarch64_static_test(name, srcs, hdrs = [], includes = [], copts = [], args = [], size = "small", tags = [], **kwargs):
    """A static program for 64-bit Arm, cross-compiled and run under qemu's user mode.

    Args:
      name: the target's name.
      srcs: all the sources of the program; there are no deps.
      hdrs: the headers they include.
      includes: folders, from the root, that are searched for headers beside the root itself.
      copts: further flags.
      args: arguments of the program.
      size: size of the test; qemu is slow.
      tags: of the test; "unsanitized" is one of them, as the configurations do not reach that compiler.
      **kwargs: further attributes of the test.
    """
    flags = C_COPTS + ["-O2", "-static", "-iquote", "."] + ["-I" + folder for folder in includes] + copts
    native.genrule(
        name = name + "_binary",
        srcs = srcs + hdrs,
        outs = [name + ".aarch64"],
        cmd = "$(location //tools/bazel:aarch64_cc.sh) $@ {} {}".format(
            " ".join(flags),
            " ".join(["$(locations {})".format(src) for src in srcs]),
        ),
        exec_tools = ["//tools/bazel:aarch64_cc.sh"],
        testonly = True,
        visibility = ["//visibility:private"],
    )
    native.sh_test(
        name = name,
        size = size,
        srcs = ["//tools/bazel:qemu_aarch64.sh"],
        args = ["$(location {}.aarch64)".format(name)] + args,
        data = [name + ".aarch64"],
        tags = tags + ["unsanitized"],
        visibility = ["//visibility:private"],
        **kwargs
    )
