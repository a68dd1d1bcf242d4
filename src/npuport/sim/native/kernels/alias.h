// Device memory of the simulated NPU is host memory, so an npu tensor can be read and written as a CPU tensor over the same bytes.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/Allocator.h>

#include "current_stream.h"

namespace npuport {

constexpr auto kNpu = c10::DeviceType::PrivateUse1;
constexpr auto kNpuKey = c10::DispatchKey::PrivateUse1;

inline void copy_metadata(const at::Tensor& from, const at::Tensor& to) {
  auto* impl = to.unsafeGetTensorImpl();
  impl->set_storage_offset(from.storage_offset());
  impl->set_sizes_and_strides(from.sizes(), from.strides());
}

// A CPU tensor over the memory of `npu`; it keeps that memory alive.
inline at::Tensor cpu_alias(const at::Tensor& npu) {
  wait_for_current_stream(npu.device().index());
  const c10::Storage& storage = npu.storage();
  c10::Storage shared(
      c10::Storage::use_byte_size_t(), storage.nbytes(),
      c10::DataPtr(const_cast<void*>(storage.data()), new c10::Storage(storage),
                   [](void* owner) { delete static_cast<c10::Storage*>(owner); }, c10::Device(c10::kCPU)),
      c10::GetAllocator(c10::kCPU), /*resizable=*/true);
  auto alias = at::detail::make_tensor<c10::TensorImpl>(std::move(shared), c10::DispatchKeySet(c10::DispatchKey::CPU), npu.dtype());
  copy_metadata(npu, alias);
  if (npu.is_conj()) alias._set_conj(true);
  if (npu.is_neg()) alias._set_neg(true);
  if (npu.unsafeGetTensorImpl()->is_wrapped_number()) alias.unsafeGetTensorImpl()->set_wrapped_number(true);
  return alias;
}

// A new npu tensor with the values and the strides of `cpu`, in memory of torch_npu's own allocator.
inline at::Tensor npu_copy(const at::Tensor& cpu, c10::Device device) {
  if (cpu.layout() != c10::kStrided || device.type() != kNpu) return cpu;
  auto npu = at::empty_strided(cpu.sizes(), cpu.strides(), cpu.options().device(device));
  if (cpu.numel() == 0) return npu;
  if (cpu.is_non_overlapping_and_dense() && !cpu.is_conj() && !cpu.is_neg()) {
    wait_for_current_stream(npu.device().index());  // its block may have been given back by something under way
    std::memcpy(npu.storage().mutable_data(), cpu.const_data_ptr(), cpu.numel() * cpu.element_size());
  } else {
    cpu_alias(npu).copy_(cpu);
  }
  return npu;
}

// An npu tensor that views the storage of `base` as `view` views the alias of `base`.
inline at::Tensor npu_view(const at::Tensor& base, const at::Tensor& view) {
  if (view.dtype() != base.dtype()) {  // view_as_real and its kind: as_strided keeps the dtype
    auto npu = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(base.storage()), base.key_set(), view.dtype());
    copy_metadata(view, npu);
    return npu;
  }
  auto npu = at::as_strided(base, view.sizes(), view.strides(), view.storage_offset());
  if (view.is_conj() != npu.is_conj()) npu._set_conj(view.is_conj());
  if (view.is_neg() != npu.is_neg()) npu._set_neg(view.is_neg());
  return npu;
}

// Bring back to `npu` what a kernel did to the shape of its alias (out= resizes, unsqueeze_ and its kind restride).
inline void follow_alias(const at::Tensor& npu, const at::Tensor& alias) {
  const bool same_memory = alias.storage().data() == npu.storage().data();
  if (same_memory) {
    if (alias.sizes() != npu.sizes() || alias.strides() != npu.strides() || alias.storage_offset() != npu.storage_offset()) {
      copy_metadata(alias, npu);
    }
    return;
  }
  npu.resize_(alias.sizes());
  if (alias.numel() != 0) cpu_alias(npu).copy_(alias);
}

}  // namespace npuport
