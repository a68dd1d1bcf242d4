// Device memory of the simulated NPU is host memory, so an npu tensor can be read and written as a CPU tensor over the same bytes.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/ccol_indices.h>
#include <ATen/ops/col_indices.h>
#include <ATen/ops/crow_indices.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/row_indices.h>
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

inline at::Tensor cpu_over(c10::DataPtr memory, const at::Tensor& npu) {
  c10::Storage shared(c10::Storage::use_byte_size_t(), npu.storage().nbytes(), std::move(memory), c10::GetAllocator(c10::kCPU), /*resizable=*/true);
  auto alias = at::detail::make_tensor<c10::TensorImpl>(std::move(shared), c10::DispatchKeySet(c10::DispatchKey::CPU), npu.dtype());
  copy_metadata(npu, alias);
  if (npu.is_conj()) alias._set_conj(true);
  if (npu.is_neg()) alias._set_neg(true);
  if (npu.unsafeGetTensorImpl()->is_wrapped_number()) alias.unsafeGetTensorImpl()->set_wrapped_number(true);
  return alias;
}

// A CPU tensor over the memory of `npu`; it keeps that memory alive.
inline at::Tensor cpu_alias(const at::Tensor& npu) {
  wait_for_current_stream(npu.device().index());
  const c10::Storage& storage = npu.storage();
  return cpu_over({const_cast<void*>(storage.data()), new c10::Storage(storage), [](void* owner) { delete static_cast<c10::Storage*>(owner); },
                   c10::Device(c10::kCPU)},
                  npu);
}

// The same for as long as somebody else holds `npu` and has waited for its stream: what that saves counts for small operators.
inline at::Tensor borrowed_cpu_alias(const at::Tensor& npu) {
  return cpu_over({const_cast<void*>(npu.storage().data()), c10::Device(c10::kCPU)}, npu);
}

inline at::Tensor npu_copy(const at::Tensor& cpu, c10::Device device);

// The same indices and values on the device. Layouts that torch_npu has no tensors of stay on the CPU.
inline at::Tensor sparse_npu_copy(const at::Tensor& cpu, c10::Device device) {
  const auto options = cpu.options().device(device);
  switch (cpu.layout()) {
    case c10::kSparse:
      return at::_sparse_coo_tensor_unsafe(npu_copy(cpu._indices(), device), npu_copy(cpu._values(), device), cpu.sizes(), options, cpu.is_coalesced());
    case c10::kSparseCsr:
    case c10::kSparseBsr:
      return at::_sparse_compressed_tensor_unsafe(npu_copy(cpu.crow_indices(), device), npu_copy(cpu.col_indices(), device),
                                                  npu_copy(cpu.values(), device), cpu.sizes(), options);
    case c10::kSparseCsc:
    case c10::kSparseBsc:
      return at::_sparse_compressed_tensor_unsafe(npu_copy(cpu.ccol_indices(), device), npu_copy(cpu.row_indices(), device),
                                                  npu_copy(cpu.values(), device), cpu.sizes(), options);
    default: return cpu;
  }
}

// A new npu tensor with the values and the strides of `cpu`, in memory of torch_npu's own allocator.
inline at::Tensor npu_copy(const at::Tensor& cpu, c10::Device device) {
  if (device.type() != kNpu) return cpu;
  if (cpu.layout() != c10::kStrided) return sparse_npu_copy(cpu, device);
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
