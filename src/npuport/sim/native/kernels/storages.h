// torch_npu copies to the host only what lies in a storage of its own kind, which describes the memory format. PyTorch's oldest file format saves
// through a tensor over foreign memory, which it refuses (torch_npu/csrc/core/NPUBridge.cpp, whose words these are).
#pragma once

#include <ATen/core/stack.h>

#include <typeinfo>

#include "alias.h"

namespace npuport {

// For the arguments of aten::copy_: (to, from, non_blocking).
inline void check_storage_of_copy(const torch::jit::Stack& stack) {
  const auto& to = torch::jit::peek(stack, 0, 3).toTensor();
  const auto& from = torch::jit::peek(stack, 1, 3).toTensor();
  if (to.device().type() == kNpu || from.device().type() != kNpu || !from.has_storage() || to.numel() == 0) return;
  static const std::type_info& known = typeid(*at::empty_strided({0}, {1}, from.options()).storage().unsafeGetStorageImpl());
  TORCH_CHECK(typeid(*from.storage().unsafeGetStorageImpl()) == known,
              "The npu storage desc is unavailable: the tensor's storage is not an NPUStorageImpl.");
}

}  // namespace npuport
