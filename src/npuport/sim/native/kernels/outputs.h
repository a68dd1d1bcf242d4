// Large results are written where they belong. A kernel of PyTorch allocates its results on the CPU, and a copy to the device follows. For
// a large result that shows in the time of a training step, so a call that is like an earlier one (the same shapes, strides, dtypes and
// numbers) allocates its results on the device and lets the operator's out= kernel write them there.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/empty_strided.h>

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "call.h"

namespace npuport {

// Bytes of an argument from which on a call counts as large; below, the copy costs less than finding out.
inline std::atomic<int64_t>& large_call() {
  static std::atomic<int64_t> bytes{256 << 10};
  return bytes;
}
constexpr size_t kRememberedCalls = 256;     // of one operator

struct ResultLayout {
  c10::DimVector sizes, strides;
  at::ScalarType type;
};

// What distinguishes a call from others of its operator, as far as it decides how the results look. None: it cannot be told.
class Signature {
 public:
  static std::optional<uint64_t> of(at::ArrayRef<c10::IValue> arguments) {
    Signature signature;
    signature.mix(static_cast<uint64_t>(at::typeMetaToScalarType(at::get_default_dtype())));  // of a quotient of integers
    for (const auto& value : arguments)
      if (!signature.add(value)) return std::nullopt;
    return signature.hash_;
  }

 private:
  void mix(uint64_t value) { hash_ = (hash_ ^ value) * 0x9E3779B97F4A7C15ull ^ (hash_ >> 29); }

  bool add(const c10::IValue& value) {
    mix(static_cast<uint64_t>(value.isNone()));
    if (value.isNone()) return true;
    if (value.isTensor()) return add(value.toTensor());
    if (value.isInt()) return mix(value.toInt()), true;
    if (value.isBool()) return mix(2 + value.toBool()), true;
    if (value.isDouble()) {
      uint64_t bits;
      const double number = value.toDouble();
      std::memcpy(&bits, &number, sizeof bits);
      return mix(bits), true;
    }
    if (value.isString()) return mix(std::hash<std::string>()(value.toStringRef())), true;
    if (value.isGenerator() || value.isDevice()) return true;
    if (!value.isList()) return false;
    mix(value.toListRef().size());
    for (const auto& item : value.toListRef())
      if (!add(item)) return false;
    return true;
  }

  bool add(const at::Tensor& tensor) {
    if (!tensor.defined()) return mix(3), true;
    if (tensor.layout() != c10::kStrided) return false;
    mix(static_cast<uint64_t>(tensor.scalar_type()) << 8 | tensor.is_conj() << 2 | tensor.is_neg() << 1 |
        tensor.unsafeGetTensorImpl()->is_wrapped_number());
    for (const auto size : tensor.sizes()) mix(size);
    for (const auto stride : tensor.strides()) mix(stride);
    return true;
  }

  uint64_t hash_ = 14695981039346656037ull;
};

inline bool returns_new_tensors(const c10::FunctionSchema& schema) {
  if (schema.is_mutable() || schema.returns().empty()) return false;
  for (const auto& result : schema.returns())
    if (result.alias_info() != nullptr || result.type()->kind() != c10::TypeKind::TensorType) return false;
  return true;
}

// Whether `out` takes what `functional` takes, and after it one tensor to write for each result.
inline bool is_out_variant(const c10::FunctionSchema& functional, const c10::FunctionSchema& out) {
  const auto& given = functional.arguments();
  const auto& taken = out.arguments();
  if (taken.size() != given.size() + functional.returns().size()) return false;
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i].name() != taken[i].name() || *given[i].type() != *taken[i].type()) return false;
  for (size_t i = given.size(); i < taken.size(); ++i)
    if (!taken[i].is_out()) return false;
  return true;
}

// Whether PyTorch generates the operator from a structured kernel, whose out= form is the kernel itself. Others are written by hand:
// some compute aside and copy, and binary_cross_entropy.out even needs another shape while it computes (measured on torch 2.13.0).
// Only structured operators have a kernel of C++ for meta tensors, by name of the file that registers it.
inline bool is_structured(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CPU) && op.dumpState().find("RegisterMeta") != std::string::npos;
}

// The out= overload of an operator whose results have a shape that follows from the call.
inline std::optional<c10::OperatorHandle> find_out_variant(const c10::OperatorHandle& op) {
  if (!returns_new_tensors(op.schema()) || op.hasTag(at::Tag::dynamic_output_shape)) return std::nullopt;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    if (name.name != op.operator_name().name || name.overload_name == op.operator_name().overload_name) continue;
    auto candidate = dispatcher.findSchema(name);
    if (candidate && is_structured(*candidate) && is_out_variant(op.schema(), candidate->schema())) return candidate;
  }
  return std::nullopt;
}

// What one operator's results looked like, by the signature of the call.
class OutputMemory {
 public:
  using Layouts = c10::SmallVector<ResultLayout, 2>;

  std::optional<c10::OperatorHandle> out_variant(const c10::OperatorHandle& op) {
    std::lock_guard<std::mutex> guard(lock_);
    if (!searched_) out_ = find_out_variant(op);
    searched_ = true;
    return out_;
  }

  std::optional<Layouts> recall(uint64_t signature) {
    std::lock_guard<std::mutex> guard(lock_);
    const auto found = known_.find(signature);
    return found == known_.end() ? std::nullopt : std::optional(found->second);
  }

  void remember(uint64_t signature, at::ArrayRef<c10::IValue> results) {
    Layouts layouts;
    for (const auto& value : results) {
      const auto& tensor = value.toTensor();
      if (!tensor.defined() || tensor.layout() != c10::kStrided || !tensor.is_non_overlapping_and_dense() || tensor.is_conj() || tensor.is_neg()) return;
      layouts.push_back({c10::DimVector(tensor.sizes()), c10::DimVector(tensor.strides()), tensor.scalar_type()});
    }
    std::lock_guard<std::mutex> guard(lock_);
    if (known_.size() >= kRememberedCalls) known_.clear();
    known_.insert_or_assign(signature, std::move(layouts));
  }

 private:
  std::mutex lock_;
  bool searched_ = false;
  std::optional<c10::OperatorHandle> out_;
  std::unordered_map<uint64_t, Layouts> known_;
};

inline bool any_large(at::ArrayRef<c10::IValue> values) {
  const auto bytes = large_call().load(std::memory_order_relaxed);
  for (const auto& value : values)
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().layout() == c10::kStrided &&
        value.toTensor().numel() * static_cast<int64_t>(value.toTensor().element_size()) >= bytes) {
      return true;
    }
  return false;
}

// Append aliases of new npu tensors to the arguments of the call.
inline void append_outputs(torch::jit::Stack* stack, const OutputMemory::Layouts& layouts, Aliases& aliases) {
  for (const auto& layout : layouts) {
    stack->emplace_back(aliases.take(at::empty_strided(layout.sizes, layout.strides, at::TensorOptions(aliases.device()).dtype(layout.type))));
  }
}

}  // namespace npuport
