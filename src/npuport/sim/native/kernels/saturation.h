// Chips that saturate: where a computation overflows they write the largest finite number, where it has no result they write 0, and only
// a flag tells (INF_NAN_MODE_ENABLE in torch_npu's documents).
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/nan_to_num.h>

#include <array>
#include <atomic>

#include "alias.h"

namespace npuport {

inline std::atomic<bool>& saturates() {
  static std::atomic<bool> mode{false};
  return mode;
}

// An operator that only moves numbers keeps them; a copy computes where it casts, unless the host does that.
enum class Computes { always, never, in_casts };

inline bool computes(Computes when, const torch::jit::Stack& stack, size_t arguments) {
  if (when != Computes::in_casts) return when == Computes::always;
  const auto &to = stack[stack.size() - arguments].toTensor(), &from = stack[stack.size() - arguments + 1].toTensor();
  return from.device().type() == kNpu && to.scalar_type() != from.scalar_type();
}

inline std::atomic<bool>& overflow_flag(c10::DeviceIndex device) {
  static std::array<std::atomic<bool>, 64> flags{};
  return flags[device < 0 ? 0 : device % 64];
}

// Whether a number among `count` has all bits of the exponent, `exponent`: an infinity or NaN.
template <typename Bits>
bool has_special(const void* data, int64_t count, Bits exponent) {
  const auto* bits = static_cast<const Bits*>(data);
  bool found = false;
  for (int64_t i = 0; i < count; ++i) found |= (bits[i] & exponent) == exponent;
  return found;
}

inline bool is_finite(const at::Tensor& computed) {
  if (!computed.is_non_overlapping_and_dense()) return at::isfinite(computed).all().item<bool>();
  const void* data = computed.const_data_ptr();
  switch (computed.scalar_type()) {
    case at::kFloat: return !has_special<uint32_t>(data, computed.numel(), 0x7f800000);
    case at::kHalf: return !has_special<uint16_t>(data, computed.numel(), 0x7c00);
    case at::kBFloat16: return !has_special<uint16_t>(data, computed.numel(), 0x7f80);
    default: return true;
  }
}

// `computed` lies on the host.
inline void saturate(const at::Tensor& computed, c10::DeviceIndex device) {
  if (!computed.defined() || computed.layout() != c10::kStrided || !computed.device().is_cpu() || computed.is_conj()) return;
  const auto type = computed.scalar_type();
  if ((type != at::kFloat && type != at::kHalf && type != at::kBFloat16) || is_finite(computed)) return;
  at::Tensor target = computed;
  target.nan_to_num_(0.0);  // infinities become the largest and the smallest number of the type
  overflow_flag(device) = true;
}

inline void saturate(const c10::IValue& value, c10::DeviceIndex device) {
  if (value.isTensor()) saturate(value.toTensor(), device);
  if (!value.isTensorList()) return;
  for (const auto& item : value.toListRef()) saturate(item.toTensor(), device);
}

// What a call writes into, of its arguments at the end of `stack`.
inline std::vector<c10::IValue> written(const c10::OperatorHandle& op, const torch::jit::Stack& stack, size_t arguments) {
  std::vector<c10::IValue> found;
  for (size_t i = 0; i < arguments; ++i) {
    const auto* alias = op.schema().arguments()[i].alias_info();
    if (alias && alias->isWrite()) found.push_back(stack[stack.size() - arguments + i]);
  }
  return found;
}

// `targets` is what the call has written into; `stack` ends with its results. A view computes nothing.
inline void saturate_call(const c10::OperatorHandle& op, const std::vector<c10::IValue>& targets, const torch::jit::Stack& stack,
                          c10::DeviceIndex device) {
  for (const auto& target : targets) saturate(target, device);
  const auto& returns = op.schema().returns();
  for (size_t i = 0; i < returns.size(); ++i)
    if (!returns[i].alias_info()) saturate(stack[stack.size() - returns.size() + i], device);
}

}  // namespace npuport
