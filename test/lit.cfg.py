# How lit runs the tests of passes and of the driver.
#
#   lit build/release/test                           the build's own tools
#   lit --param boa_bin=build/release/bin test       any tools

import os
import shutil

import lit.formats

config.name = "boa"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "frontend", "runtime", "gradients", "bench", "e2e", "fuzz", "mutations"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))

root = os.path.dirname(config.test_source_root)
boa_bin = os.path.abspath(getattr(config, "boa_bin", lit_config.params.get("boa_bin", "")))
llvm_bin = getattr(config, "llvm_bin", "/usr/lib/llvm-22/bin")
if config.test_exec_root is None:
    config.test_exec_root = os.path.join(root, "build", "lit")
if not os.path.exists(os.path.join(boa_bin, "boa-opt")):
    lit_config.fatal("no boa-opt in '%s': build it, or give --param boa_bin=DIR" % boa_bin)

# BOA_TEST_SCOPE: which `tools/check` it is. Without one, everything is run.
scope = os.environ.get("BOA_TEST_SCOPE", "nightly")
if scope != "quick":
    config.available_features.add("scope-all")
if scope == "nightly":
    config.available_features.add("scope-nightly")
# %delay_runs: runs with other delays of the fake GPU.
config.substitutions.append(("%delay_runs", "34" if scope == "nightly" else "4"))
# %fake_steps: steps of the examples on it.
config.substitutions.append(("%fake_steps", "20" if scope == "nightly" else "8"))
# %graph_share: at most so many calls a launch. So few steps repeat few graphs, whose captures are calls, too.
config.substitutions.append(("%graph_share", "0.9" if scope == "nightly" else "2"))

config.environment["PATH"] = os.pathsep.join([boa_bin, llvm_bin, os.environ["PATH"]])
# NVIDIA's assembler, where there is one: it needs no device.
ptxas = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
if os.path.exists(ptxas):
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))
# The fake of CUDA's driver and library, where they were built.
fake_cuda = os.path.join(os.path.dirname(boa_bin), "lib")
if os.path.exists(os.path.join(fake_cuda, "libboa_fake_cuda.so")):
    config.available_features.add("fake-cuda")
    if os.path.exists(os.path.join(fake_cuda, "libboa_fake_profiler.so")):
        config.available_features.add("nvtx")
    config.substitutions.append(("%fake_cuda", fake_cuda))
# %examples: the specs that the documentation shows.
config.substitutions.append(("%examples", os.path.join(root, "examples")))
# %tools: the scripts that a person runs.
config.substitutions.append(("%tools", os.path.join(root, "tools")))
# %build: what `cmake --install` takes.
build = os.path.dirname(boa_bin)
if shutil.which("cmake") and os.path.exists(os.path.join(build, "cmake_install.cmake")):
    config.available_features.add("install")
    config.substitutions.append(("%build", build))
