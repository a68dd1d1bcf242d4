// What the simulated chip does not take: for an operator, sets of dtypes, each with the arguments that must have one of them.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <vector>

#include "alias.h"

namespace npuport {

class Refusals {
 public:
  // Tensors of one of the dtypes in `dtypes` (bits by ScalarType) are refused where all of `arguments` that are given have it.
  void add(uint64_t dtypes, std::vector<int64_t> arguments) { entries_.push_back({dtypes, std::move(arguments)}); }

  // Copies from one of `dtypes` to another dtype or back are refused, under the name of `cast`; plain copies are not.
  void add_cast(uint64_t dtypes, std::string cast) {
    cast_dtypes_ = dtypes;
    cast_ = std::move(cast);
  }

  // Tell Python of a call that the chip does not take; it warns, or raises what the device would. `stack` ends with the call's arguments.
  void check(const c10::OperatorHandle& op, const torch::jit::Stack& stack, size_t arguments) const {
    const c10::IValue* values = stack.data() + stack.size() - arguments;
    if (cast_dtypes_) {
      if (const auto* refused = refused_cast(values)) return tell(cast_, *refused);
    }
    for (const auto& entry : entries_) {
      if (const auto* refused = entry.refused(values)) {
        const auto& name = op.operator_name();
        return tell(name.overload_name.empty() ? name.name : name.name + "." + name.overload_name, *refused);
      }
    }
  }

 private:
  struct Entry {
    uint64_t dtypes;
    std::vector<int64_t> arguments;

    // A tensor of the call, if the call is refused.
    const at::Tensor* refused(const c10::IValue* values) const {
      const at::Tensor* found = nullptr;
      for (const auto index : arguments) {
        const at::Tensor* tensor = tensor_in(values[index]);
        if (!tensor) continue;
        if (tensor->numel() == 0) return nullptr;  // CANN may return before it looks
        if (!has(dtypes, *tensor)) return nullptr;
        if (found && found->scalar_type() != tensor->scalar_type()) return nullptr;
        found = tensor;
      }
      return found;
    }
  };

  // CANN does not see tensors of the host.
  static const at::Tensor* tensor_in(const c10::IValue& value) {
    const at::Tensor* tensor = nullptr;
    if (value.isTensor()) {
      tensor = &value.toTensor();
    } else if (value.isTensorList() && !value.toListRef().empty()) {
      tensor = &value.toListRef()[0].toTensor();
    }
    return tensor && tensor->defined() && tensor->device().type() == kNpu ? tensor : nullptr;
  }

  static bool has(uint64_t dtypes, const at::Tensor& tensor) { return dtypes >> static_cast<int>(tensor.scalar_type()) & 1; }

  // `values`: to, from, ...
  const at::Tensor* refused_cast(const c10::IValue* values) const {
    const at::Tensor *to = tensor_in(values[0]), *from = tensor_in(values[1]);
    if (!to || !from || to->scalar_type() == from->scalar_type()) return nullptr;
    return has(cast_dtypes_, *to) ? to : has(cast_dtypes_, *from) ? from : nullptr;
  }

  static void tell(const std::string& name, const at::Tensor& tensor) {
    static const auto listener = c10::Dispatcher::singleton().findSchemaOrThrow("npuport_sim::refused", "");
    torch::jit::Stack told{name, static_cast<int64_t>(tensor.scalar_type()), static_cast<int64_t>(tensor.device().index())};
    listener.callBoxed(told);
  }

  std::vector<Entry> entries_;  // few: nearly every call finds none
  uint64_t cast_dtypes_ = 0;
  std::string cast_;
};

}  // namespace npuport
