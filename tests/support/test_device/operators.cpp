// The device's operators: memory and views here, everything else by LibTorch's kernels for the CPU.

#include "support/test_device/operators.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <atomic>
#include <set>
#include <string>

#include "support/test_device/memory.h"
#include "support/test_device/test_device.h"

namespace posenc::testing {
namespace {

std::atomic<int64_t> all_waits{0};

// The device's own copies, between its memory and the CPU's kernels, are no traffic.
thread_local int inside = 0;
struct Inside {
  Inside() { ++inside; }
  ~Inside() { --inside; }
};

const c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, device_allocator(), kKeys, c10::dtype_or_default(dtype),
                                   format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, device_allocator(), kKeys,
                                           c10::dtype_or_default(dtype));
}

const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef size,
                         std::optional<at::MemoryFormat>) {
  if (self.sizes() == size) return self;
  const int64_t numel = c10::multiply_integers(size);
  const auto needed = static_cast<std::size_t>(self.storage_offset() + numel) * self.element_size();
  const at::Storage& storage = self.storage();
  if (numel > 0 && needed > storage.nbytes()) {
    const at::Tensor larger = at::detail::empty_generic({static_cast<int64_t>(needed)},
                                                        device_allocator(), kKeys, at::kByte, {});
    if (storage.nbytes() > 0) {
      const HostAccess access({self, larger});
      std::memcpy(larger.storage().mutable_data(), storage.data(), storage.nbytes());
    }
    auto* const impl = storage.unsafeGetStorageImpl();
    auto* const other = larger.storage().unsafeGetStorageImpl();
    impl->set_data_ptr_noswap(other->set_data_ptr({nullptr, self.device()}));
    impl->set_nbytes(needed);
  }
  self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  return self;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& to, bool non_blocking) {
  if (inside == 0 && self.is_cpu() != to.is_cpu() && !non_blocking) count_wait();
  if (self.numel() == 0) return to;
  const HostAccess access({self, to});
  on_host(to).copy_(on_host(self));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& to) {
  if (to.sizes() != self.sizes()) to.resize_(self.sizes());
  return copy_from(self, to, false);
}

at::Scalar local_scalar(const at::Tensor& self) {
  if (inside == 0) count_wait();
  const HostAccess access({self});
  return on_host(self).item();
}

// LibTorch's own rule does not know this device: a module could not be moved to it in place.
bool is_compatible(const at::Tensor& self, const at::Tensor& from) {
  return self.layout() == from.layout();
}

// Convolutions have hooks of their own for devices that LibTorch does not know.
at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, at::IntArrayRef stride,
                       at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, int64_t groups) {
  const Inside own;
  const auto host_bias = bias && bias->defined() ? std::make_optional(bias->cpu()) : std::nullopt;
  return at::convolution(input.cpu(), weight.cpu(), host_bias, stride, padding, dilation,
                         transposed, output_padding, groups)
      .to(input.device());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& grad, const at::Tensor& input, const at::Tensor& weight,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef output_padding, int64_t groups, std::array<bool, 3> mask) {
  const Inside own;
  const std::vector<int64_t> bias = {weight.size(transposed ? 1 : 0) * (transposed ? groups : 1)};
  auto [x, w, b] =
      at::convolution_backward(grad.cpu(), input.cpu(), weight.cpu(), bias, stride, padding,
                               dilation, transposed, output_padding, groups, mask);
  const auto there = [&](const at::Tensor& t) { return t.defined() ? t.to(input.device()) : t; };
  return {there(x), there(w), there(b)};
}

// Operations whose result's size, or whose host result, depends on values.
bool waits_for_values(const std::string& name) {
  static const std::set<std::string> names = {"aten::nonzero",
                                              "aten::nonzero.out",
                                              "aten::masked_select",
                                              "aten::_unique",
                                              "aten::_unique2",
                                              "aten::unique_consecutive",
                                              "aten::unique_dim",
                                              "aten::equal",
                                              "aten::bincount",
                                              "aten::is_nonzero",
                                              "aten::repeat_interleave.Tensor",
                                              "aten::_coalesce"};
  return names.count(name) != 0;
}

bool takes_host_indices(const std::string& name) {
  return name.rfind("aten::index", 0) == 0 || name.rfind("aten::_index_put_impl_", 0) == 0;
}

template <typename Visitor>
void for_each_tensor(const c10::IValue& value, const Visitor& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) visit(tensor);
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      if (tensor) visit(*tensor);
    }
  }
}

// The rules of a GPU: one device for all tensors, and a generator of that device.
void check_arguments(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const auto& arguments = op.schema().arguments();
  const std::string name = c10::toString(op.operator_name());
  const auto first = stack.size() - arguments.size();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    c10::IValue& value = stack[first + i];
    for_each_tensor(value, [&](const at::Tensor& tensor) {
      TORCH_CHECK(!tensor.is_cpu() || tensor.dim() == 0 || takes_host_indices(name), name,
                  ": expected all tensors to be on the same device, but found ", test_device(),
                  " and cpu");
    });
    const auto type = arguments[i].type();
    const bool takes_generator = type->kind() == c10::TypeKind::GeneratorType ||
                                 (type->kind() == c10::TypeKind::OptionalType &&
                                  type->expectRef<c10::OptionalType>().getElementType()->kind() ==
                                      c10::TypeKind::GeneratorType);
    if (takes_generator) {
      value = host_generator(value.isNone() ? std::nullopt
                                            : std::optional<at::Generator>(value.toGenerator()));
    }
  }
  if (inside == 0 && waits_for_values(name)) count_wait();
}

void dense_by_the_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  by_the_host(op, stack, c10::DispatchKey::CPU);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&dense_by_the_host>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", TORCH_FN(empty));
  library.impl("empty_strided", TORCH_FN(empty_strided));
  library.impl("resize_", TORCH_FN(resize));
  library.impl("_copy_from", TORCH_FN(copy_from));
  library.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  library.impl("_local_scalar_dense", TORCH_FN(local_scalar));
  library.impl("_has_compatible_shallow_copy_type", TORCH_FN(is_compatible));
  library.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  library.impl("view", TORCH_FN(at::native::view));
  library.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  library.impl("unfold", TORCH_FN(at::native::unfold));
  library.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  library.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  library.impl("convolution_overrideable", TORCH_FN(convolution));
  library.impl("convolution_backward_overrideable", TORCH_FN(convolution_backward));
  library.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  library.impl("set_.source_Storage_storage_offset", TORCH_FN(at::native::set_storage_cpu_));
}

}  // namespace

void by_the_host(const c10::OperatorHandle& op, torch::jit::Stack* stack, c10::DispatchKey key) {
  check_arguments(op, *stack);
  const Inside own;
  at::native::cpu_fallback(op, stack, /*error_on_views=*/false, key);
}

void count_wait() { ++all_waits; }

DeviceWaits::DeviceWaits() : before_(all_waits) {}

int64_t DeviceWaits::count() const { return all_waits - before_; }

}  // namespace posenc::testing
