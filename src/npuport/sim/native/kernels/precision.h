// PyTorch has no CPU kernel for half precision in places where the device has one ("not implemented for 'Half'"). There the call is
// computed in float32 and its results are rounded, as the device accumulates too.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/_to_copy.h>

#include <atomic>
#include <set>
#include <string>

namespace npuport {

inline std::optional<at::ScalarType> wider(at::ScalarType type) {
  switch (type) {
    case at::kHalf:
    case at::kBFloat16: return at::kFloat;
    case at::kComplexHalf: return at::kComplexFloat;
    default: return std::nullopt;
  }
}

// Which of the narrow types an operator is not computed in: it has proved to have no CPU kernel for them, or one that is not fit for
// use, or PyTorch composes it from several kernels and each rounds, where the device has one.
class LackingTypes {
 public:
  void add_all() {
    for (const auto type : {at::kHalf, at::kBFloat16, at::kComplexHalf}) add(type);
  }
  bool has(at::ScalarType type) const { return bits_.load(std::memory_order_relaxed) & bit(type); }
  void add(at::ScalarType type) { bits_.fetch_or(bit(type), std::memory_order_relaxed); }

 private:
  static uint64_t bit(at::ScalarType type) { return uint64_t{1} << static_cast<int>(type); }
  std::atomic<uint64_t> bits_{0};
};

// Matrix products and convolutions of float16: PyTorch's CPU kernels are up to two hundred times slower than those of float32 where the
// processor has no arithmetic for it, and the device's cube unit accumulates in float32.
inline bool multiplies_matrices(const std::string& operator_name) {
  static const std::set<std::string> names{"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::mv", "aten::addmv",
                                           "aten::addbmm", "aten::dot", "aten::matmul", "aten::linear", "aten::convolution",
                                           "aten::convolution_backward"};
  return names.count(operator_name) != 0;
}

// The narrow type of a call: that of its first tensor that has one, or of its dtype argument.
inline std::optional<at::ScalarType> narrow_type(const c10::IValue& value, const c10::Argument& argument) {
  const auto of = [](at::ScalarType type) { return wider(type) ? std::optional(type) : std::nullopt; };
  if (value.isTensor()) return value.toTensor().defined() ? of(value.toTensor().scalar_type()) : std::nullopt;
  if (value.isInt() && argument.real_type()->kind() == c10::TypeKind::ScalarTypeType) return of(static_cast<at::ScalarType>(value.toInt()));
  if (!value.isTensorList()) return std::nullopt;
  for (const auto& item : value.toListRef())
    if (item.toTensor().defined() && wider(item.toTensor().scalar_type())) return item.toTensor().scalar_type();
  return std::nullopt;
}

inline bool says_not_implemented_for(const c10::Error& error, at::ScalarType type) {
  const std::string text = error.what_without_backtrace();
  return text.find(std::string("not implemented for '") + c10::toString(type) + "'") != std::string::npos;
}

// The arguments of one call, widened; and its results and what it wrote, narrowed again.
class WiderCall {
 public:
  explicit WiderCall(at::ScalarType narrow) : narrow_(narrow), wide_(*wider(narrow)) {}

  c10::IValue argument(const c10::IValue& value, const c10::Argument& argument) {
    if (value.isTensor()) return tensor(value.toTensor(), argument);
    if (value.isInt() && argument.real_type()->kind() == c10::TypeKind::ScalarTypeType) {
      const auto type = static_cast<at::ScalarType>(value.toInt());
      return wider(type) ? c10::IValue(static_cast<int64_t>(*wider(type))) : value;
    }
    if (!value.isTensorList()) return value;
    c10::List<at::Tensor> list;
    for (const auto& item : value.toListRef()) list.push_back(tensor(item.toTensor(), argument));
    return list;
  }

  c10::IValue result(const c10::IValue& value) const {
    if (value.isTensor()) return narrowed(value.toTensor());
    if (!value.isTensorList()) return value;
    c10::List<at::Tensor> list;
    for (const auto& item : value.toListRef()) list.push_back(narrowed(item.toTensor()));
    return list;
  }

  void write_back() const {
    for (const auto& [given, widened] : written_) {
      if (given.sizes() != widened.sizes()) given.resize_(widened.sizes());
      given.copy_(widened);
    }
  }

 private:
  at::Tensor tensor(const at::Tensor& given, const c10::Argument& argument) {
    if (!given.defined() || !wider(given.scalar_type())) return given;
    auto widened = given.to(*wider(given.scalar_type()));
    if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) written_.emplace_back(given, widened);
    return widened;
  }

  at::Tensor narrowed(const at::Tensor& result) const {
    if (!result.defined()) return result;
    for (const auto& [given, widened] : written_)
      if (widened.is_same(result)) return given;
    return result.scalar_type() == wide_ ? result.to(narrow_) : result;
  }

  at::ScalarType narrow_, wide_;
  c10::SmallVector<std::pair<at::Tensor, at::Tensor>, 2> written_;  // an argument that the kernel writes, and its wide copy
};

// Replace the arguments at the end of `stack` by the results of PyTorch's CPU kernel. False: they were computed in a wider type.
inline bool call_cpu_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack, LackingTypes& lacking) {
  const auto& arguments = op.schema().arguments();
  const auto first = stack->size() - arguments.size();
  std::optional<at::ScalarType> narrow;
  for (size_t i = 0; i < arguments.size() && !narrow; ++i) narrow = narrow_type((*stack)[first + i], arguments[i]);
  const c10::DispatchKeySet cpu(c10::DispatchKey::CPU);
  if (!narrow) return op.redispatchBoxed(cpu, stack), true;
  if (!lacking.has(*narrow)) {
    const std::vector<c10::IValue> given(stack->begin() + first, stack->end());
    try {
      return op.redispatchBoxed(cpu, stack), true;
    } catch (const c10::NotImplementedError& error) {
      if (!says_not_implemented_for(error, *narrow)) throw;
      lacking.add(*narrow);
      stack->resize(first);
      stack->insert(stack->end(), given.begin(), given.end());
    }
  }
  WiderCall call(*narrow);
  for (size_t i = 0; i < arguments.size(); ++i) (*stack)[first + i] = call.argument((*stack)[first + i], arguments[i]);
  op.redispatchBoxed(cpu, stack);
  call.write_back();
  for (size_t i = first; i < stack->size(); ++i) (*stack)[i] = call.result((*stack)[i]);
  return false;
}

}  // namespace npuport
