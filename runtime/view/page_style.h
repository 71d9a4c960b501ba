//===- page_style.h - The look of a page ------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_VIEW_PAGE_STYLE_H
#define BOA_RUNTIME_VIEW_PAGE_STYLE_H

namespace boa {

/// The style sheet. It has a light and a dark form.
const char *StyleSheet();

} // namespace boa

#endif // BOA_RUNTIME_VIEW_PAGE_STYLE_H
