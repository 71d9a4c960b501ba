//===- measures.h - What is measured on a GPU -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each prints lines as it goes and returns an exit status: 1 where something of it was not
// measured, which a line says.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_GPU_MEASURES_H
#define BOA_TEST_GPU_MEASURES_H

#include <string>

namespace boa::gputest {

/// Which GPU it is, by the driver alone, and whether it answers.
int ShowEnvironment();

/// Copies in each direction, alone and at once, and on the device.
int MeasureCopies();

/// What a launch and a CUDA graph cost, by a kernel that boa-pack-kernels packed.
int MeasureLaunches(const std::string &object);

// Of a program that was packed, with what is the GPU's peak in operations a second, or 0:

/// Each product that is distinct, in its layout.
int MeasureProducts(const std::string &file, double peak);

/// Attention and its gradient: by the program's own kernels and by cuDNN, in one piece and in
/// parts, each twice for the same bits.
int MeasureAttention(const std::string &file, double peak);

/// A layer forward and backward, and each call of its kernels, of all others and of the head.
int MeasureLayer(const std::string &file, double peak);

/// Seconds of each kernel as one CUDA graph, in lines that `boa simulate --kernels` takes.
int MeasureTimes(const std::string &file);

/// The optimizer's updates, norms of gradients and checksums: their rates, and whether their
/// results are the host's.
int MeasureUpdates(const std::string &file, double peak);

} // namespace boa::gputest

#endif // BOA_TEST_GPU_MEASURES_H
