// The arguments and results of one operator call, between the npu device and the CPU kernel that computes.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "alias.h"
#include "generators.h"

namespace npuport {

// The tensors of one call: which npu tensor stands behind which CPU alias.
class Aliases {
 public:
  Aliases(const c10::OperatorHandle& op, bool mixes_devices) : op_(op), mixes_devices_(mixes_devices) {}

  at::Tensor take(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    if (tensor.device().type() != kNpu) {
      if (tensor.dim() != 0 && host_.type() == kNpu) host_ = tensor.device();
      return tensor;
    }
    if (!waited_ || device_ != tensor.device()) wait_for_current_stream(tensor.device().index());
    waited_ = true;
    if (device_.type() != kNpu) device_ = tensor.device();
    TORCH_CHECK(tensor.device() == device_ || mixes_devices_, "Expected all tensors to be on the same device, but ", op_.operator_name(),
                " got ", device_, " and ", tensor.device());
    if (!tensor.has_storage()) return tensor;
    npu_.push_back(tensor);
    cpu_.push_back(borrowed_cpu_alias(tensor));
    return cpu_.back();
  }

  void take_device(c10::Device device) { device_ = device; }

  // Where one operand stays on the host a real NPU refuses the call, and a CPU kernel would not notice.
  void check() const {
    TORCH_CHECK(mixes_devices_ || npu_.empty() || host_.type() == kNpu,  // torch_npu's own words, which its users search for
                "Expected all tensors to be on the same device. Expected NPU tensor, please check whether the input tensor device is correct. (",
                op_.operator_name(), " got ", device_, " and ", host_, ")");
  }

  c10::Device device() const { return device_; }

  // Every kernel may have resized or restrided what it was given to write.
  void finish() const {
    for (size_t i = 0; i < cpu_.size(); ++i) follow_alias(npu_[i], cpu_[i]);
  }

  at::Tensor give_back(const at::Tensor& result) const {
    if (!result.defined() || result.device().type() != c10::kCPU) return result;
    if (!result.has_storage()) return npu_copy(result, device_);
    for (size_t i = 0; i < cpu_.size(); ++i)
      if (cpu_[i].is_same(result)) return npu_[i];
    for (size_t i = 0; i < cpu_.size(); ++i)
      if (result.storage().is_alias_of(cpu_[i].storage())) return npu_view(npu_[i], result);
    for (const auto& tensor : host_tensors_)
      if (tensor.is_same(result)) return result;
    return npu_copy(result, device_);
  }

  void remember_host(const at::Tensor& tensor) { host_tensors_.push_back(tensor); }

 private:
  const c10::OperatorHandle& op_;
  bool mixes_devices_;
  bool waited_ = false;
  c10::Device device_{c10::kCPU};
  c10::Device host_{kNpu, 0};  // npu: no host tensor seen
  c10::SmallVector<at::Tensor, 6> npu_, cpu_;
  c10::SmallVector<at::Tensor, 2> host_tensors_;
};

inline c10::IValue cpu_argument(const c10::IValue& value, Aliases& aliases, std::vector<GeneratorOfCall>& generators) {
  if (value.isTensor()) {
    const auto& tensor = value.toTensor();
    if (tensor.defined() && tensor.device().is_cpu()) aliases.remember_host(tensor);
    return aliases.take(tensor);
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    list.reserve(value.toListRef().size());
    for (const auto& item : value.toListRef()) list.push_back(aliases.take(item.toTensor()));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& item : value.toListRef()) {
      list.push_back(item.isNone() ? std::nullopt : std::optional<at::Tensor>(aliases.take(item.toTensor())));
    }
    return list;
  }
  if (value.isDevice()) {
    aliases.take_device(value.toDevice());
    return value.toDevice().type() == kNpu ? c10::Device(c10::kCPU) : value.toDevice();
  }
  if (value.isGenerator() && value.toGenerator().defined() && value.toGenerator().device().type() == kNpu) {
    generators.emplace_back(value.toGenerator());
    return generators.back().cpu();
  }
  return value;
}

inline c10::IValue npu_result(const c10::IValue& value, const Aliases& aliases) {
  if (value.isTensor()) return aliases.give_back(value.toTensor());
  if (!value.isTensorList()) return value;
  c10::List<at::Tensor> list;
  for (const auto& item : value.toListRef()) list.push_back(aliases.give_back(item.toTensor()));
  return list;
}

}  // namespace npuport
